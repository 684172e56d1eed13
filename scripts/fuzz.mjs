// `npm run fuzz` runs every fuzz target, `npm run fuzz -- edge --count 1000000 --seed 7` one. A target is
// test/fuzz/<subject>/main.ts. It prints its seed and exits with code 1 when an input crashed, hung or leaked.
import { runSubjects } from './subjects.mjs'

runSubjects({ what: 'fuzz target', folder: 'test/fuzz', usage: 'npm run fuzz -- SUBJECT [--count N] [--seed N]' })
