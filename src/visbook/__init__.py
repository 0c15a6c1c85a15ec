"""What the book is made with: it does the runs of the papers, judges them and builds the
website, by `visprompt`.

The rooms, each of which imports only those before it and the library: `theory`, `pretraining`,
`timing`, `auditing`, `studies`, `sharing`, `pages`, `chapters`, `site`.
"""
