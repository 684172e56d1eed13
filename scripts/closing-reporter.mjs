// tap's own closing line has no `N passed`; CI and people look for one. Prints each file, every failure in full, then the counts.
import { Transform } from 'node:stream'
import { Parser } from 'tap-parser'

const indent = (text, columns) => String(text).replace(/^/gm, ' '.repeat(columns))

export default class ClosingReporter extends Transform {
  #parser = new Parser()
  #count = { pass: 0, fail: 0, skip: 0, todo: 0 }

  constructor() {
    super()
    this.#watch(this.#parser, [])
    this.#parser.on('complete', result => {
      const n = this.#count
      if (!result.ok && n.fail === 0) n.fail = 1
      const skipped = n.skip + n.todo
      this.push(`${n.pass} passed, ${n.fail} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`)
    })
  }

  #watch(parser, path) {
    const subtests = new Set()
    parser.on('child', child => {
      subtests.add(child.name)
      this.#watch(child, [...path, child.name])
    })
    parser.on('assert', result => {
      if (path.length === 0)
        this.push(
          `${result.ok ? 'ok  ' : 'FAIL'} ${result.name}${result.time ? ` ${Math.round(result.time)} ms` : ''}\n`,
        )
      if (subtests.has(result.name)) return // a subtest's own summary line
      if (result.skip) this.#count.skip++
      else if (result.todo) this.#count.todo++
      else if (result.ok) this.#count.pass++
      else {
        this.#count.fail++
        this.push(`  not ok ${[...path, result.name].join(' > ')}\n`)
        if (result.diag) this.push(`${indent(JSON.stringify(result.diag, null, 2), 4)}\n`)
      }
    })
    parser.on('bailout', reason => this.push(`Bail out! ${reason}\n`))
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
