// `npm run bench` runs every benchmark, `npm run bench -- media` one. A benchmark is bench/<subject>/main.ts. It
// measures a reference in the same run, prints ratios, and writes bench/results/<subject>.json.
import { runSubjects } from './subjects.mjs'

runSubjects({ what: 'benchmark', folder: 'bench', usage: 'npm run bench -- SUBJECT [options]' })
