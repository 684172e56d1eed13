// `npm run fuzz` runs every fuzz target, `npm run fuzz -- edge --count 1000000 --seed 7` one. Each is test/fuzz/<subject>/main.ts,
// prints its seed, and ends with exit code 1 when an input crashed, hung or leaked.
import { runSubjects } from './subjects.mjs'

runSubjects({ what: 'fuzz target', folder: 'test/fuzz', usage: 'npm run fuzz -- SUBJECT [--count N] [--seed N]' })
