package config

import "virdeck/internal/problem"

// Problem is one thing wrong (or, from [Config.Warnings], suspicious) in a
// configuration: one line of text.
type Problem = problem.Problem

// Problems are all problems of one file, by line.
type Problems = problem.Problems
