"""Tasks: images and labels in three splits, the drawn ones and those in folders of pictures."""
