// A tap reporter that prints each file, every failure in full, then `N passed`, which tap's own closing line lacks and
// which CI and people look for. Counts are kept by file: after a second run of some files (scripts/test.mjs), the
// closing line covers all files.
import { readFileSync, writeFileSync } from 'node:fs'
import { Transform } from 'node:stream'
import { Parser } from 'tap-parser'

/** File with the counts of the last run, by test file. */
export const COUNTS = '.tap/counts.json'

const indent = (text, columns) => String(text).replace(/^/gm, ' '.repeat(columns))
const sum = (counts, what) => counts.reduce((total, file) => total + file[what], 0)

export default class ClosingReporter extends Transform {
  #parser = new Parser()
  /** By file: `ok`, and the numbers of passed, failed and skipped assertions. */
  #files = {}
  #before = process.env.STROWGER_TEST_AGAIN ? JSON.parse(readFileSync(COUNTS, 'utf8')) : {}

  constructor() {
    super()
    this.#watch(this.#parser, [])
    this.#parser.on('complete', result => {
      const all = { ...this.#before, ...this.#files }
      writeFileSync(COUNTS, JSON.stringify(all))
      const files = Object.values(all)
      // A run can fail without a failed assertion: when a file never started, or after a bail-out.
      const failed = sum(files, 'fail') || (result.ok ? 0 : 1)
      const skipped = sum(files, 'skip')
      this.push(`${sum(files, 'pass')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`)
    })
  }

  #watch(parser, path) {
    const subtests = new Set()
    parser.on('child', child => {
      subtests.add(child.name)
      this.#watch(child, [...path, child.name])
    })
    parser.on('assert', result => {
      // A subtest's own line only summarizes assertions that were already counted.
      if (!subtests.has(result.name)) this.#take(result, path)
      if (path.length === 0) this.#close(result)
    })
    parser.on('bailout', reason => this.push(`Bail out! ${reason}\n`))
  }

  #countOf(file) {
    this.#files[file] ??= { pass: 0, fail: 0, skip: 0 }
    return this.#files[file]
  }

  #take(result, path) {
    const [file = result.name] = path
    const count = this.#countOf(file)
    if (result.skip || result.todo) count.skip++
    else if (result.ok) count.pass++
    else {
      count.fail++
      this.push(`  not ok ${[...path, result.name].join(' > ')}\n`)
      if (result.diag) this.push(`${indent(JSON.stringify(result.diag, null, 2), 4)}\n`)
    }
  }

  #close({ name, ok, time }) {
    const timed = time ? ` ${Math.round(time)} ms` : ''
    this.push(`${ok ? 'ok  ' : 'FAIL'} ${name}${timed}\n`)
    const count = this.#countOf(name)
    count.ok = ok
    if (!ok) count.fail ||= 1
  }

  _transform(chunk, _encoding, done) {
    this.#parser.write(chunk)
    done()
  }

  _flush(done) {
    this.#parser.end()
    done()
  }
}
