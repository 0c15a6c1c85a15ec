"""What the chapters' pages share: their parameters, the runs they show, and the tables and figures made of them."""
