"""What is wrong with a training run, named from measured signs: the checks are pure functions signs -> finding."""
