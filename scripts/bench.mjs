// `npm run bench` runs every benchmark, `npm run bench -- media` one. Each is bench/<subject>/main.ts, measures a reference
// in the same run, prints ratios, and writes bench/results/<subject>.json.
import { runSubjects } from './subjects.mjs'

runSubjects({ what: 'benchmark', folder: 'bench', usage: 'npm run bench -- SUBJECT [options]' })
