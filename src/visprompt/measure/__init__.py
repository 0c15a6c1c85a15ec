"""What is read off a model as built: operations, memory, time, attention, similarity, and the
counts that papers print."""
