// What `npm test` prints: a line for each file, failures in full, the slowest files, and the closing line, which CI and
// people look for.

const SLOWEST = 10

const indented = (text, by = 4) => text.replace(/^(?=.)/gm, ' '.repeat(by))
const seconds = ms => `${(ms / 1000).toFixed(1)} s`
const sum = (files, what) => files.reduce((total, file) => total + file[what], 0)

/**
 * A file's time in three parts: until its first assertion (it loads modules and starts processes), working (CPU time of
 * its process and of those that it has started), and the rest, in which it waits.
 */
function line({ file, wall_ms, cpu_ms, start_ms }) {
  const waiting_ms = Math.max(0, wall_ms - cpu_ms)
  const parts = [wall_ms, start_ms, cpu_ms, waiting_ms].map(ms => seconds(ms).padStart(9))
  return `${parts.join('')}  ${file}`
}
const HEAD = `${['wall', 'start', 'CPU', 'waiting'].map(name => name.padStart(9)).join('')}  file`

export class Printer {
  #total
  #files = []
  #failed = new Set()
  #failures = new Map()
  #comments = new Map()
  #check = true
  #begun_ms = Date.now()

  constructor(total) {
    this.#total = total
  }

  take(message, output) {
    const { file } = message
    switch (message.event) {
      case 'comment':
        return this.#list(this.#comments, file).push(message.text)
      case 'failure':
        this.#list(this.#failures, file).push(message)
        return console.log(`  not ok ${[file, ...message.path].join(' > ')}\n${indented(message.detail)}`)
      case 'end':
        return this.#close(message, output)
    }
  }

  /** The process of these files has ended. A fault that no test reported is a failure of the file that ran. */
  exited({ files, left, current, code, signal, output }) {
    const reported = files.some(file => this.#failed.has(file) || this.#failures.has(file))
    const how = signal ? `ended by ${signal}` : `exit code ${code}`
    const unreported = left.length === 0 && code !== 0 && !reported ? [current] : []
    if (files.length > 1 && (left.length > 0 || unreported.length > 0))
      console.log(`  the process of ${files.join(' ')}: ${how}`)
    for (const file of [...left, ...unreported]) {
      const path = [file === current ? `the process ended before its tests: ${how}` : 'never started']
      // `build/` may have been written just then: an empty main.js ends at once, without an error.
      if (current === undefined) path[0] = `the process ended before it read a test: ${how}`
      this.take({ event: 'failure', file, path: unreported.length > 0 ? [how] : path, detail: indented(output) }, '')
      if (unreported.length > 0) this.#failed.add(file)
      else this.#close({ file, pass: 0, fail: 1, skip: 0, wall_ms: 0, cpu_ms: 0, start_ms: 0 }, '')
    }
    const late = this.#files.filter(({ file }) => files.includes(file))
    for (const one of late) {
      one.fail = Math.max(one.fail, this.#failures.get(one.file)?.length ?? 0)
      if (one.fail > 0) this.#failed.add(one.file)
    }
  }

  checked(ok, output) {
    this.#check = ok
    console.log(`${ok ? 'ok  ' : 'FAIL'} check\n${indented(output)}`.trimEnd())
  }

  #list(of, file) {
    if (!of.has(file)) of.set(file, [])
    return of.get(file)
  }

  #close(end, output) {
    const { event: _, ...counts } = end
    this.#files.push(counts)
    const said = [...(this.#comments.get(end.file) ?? []).map(text => `# ${text}`), output].join('\n').trim()
    if (end.fail > 0) {
      this.#failed.add(end.file)
      if (said !== '') console.log(indented(said))
    }
    const progress = `[${this.#files.length}/${this.#total}${this.#failed.size > 0 ? `, ${this.#failed.size} failed` : ''}]`
    console.log(`${end.fail > 0 ? 'FAIL' : 'ok  '} ${progress} ${end.file} ${Math.round(end.wall_ms)} ms`)
  }

  /** Times and assertions of the files that passed, for the order of the next run and for assertions.mjs. */
  times() {
    const passed = this.#files.filter(({ file }) => !this.#failed.has(file))
    const rounded = ({ wall_ms, cpu_ms, pass }) => ({ wall_ms: Math.round(wall_ms), cpu_ms: Math.round(cpu_ms), pass })
    return Object.fromEntries(passed.map(one => [one.file, rounded(one)]))
  }

  /** The run as a whole, for assertions.mjs. */
  summary() {
    const in_seconds = ms => Math.round(ms / 1000)
    return {
      files: this.#files.length,
      passed: sum(this.#files, 'pass'),
      failed: [...this.#failed],
      wall_s: in_seconds(Date.now() - this.#begun_ms),
      cpu_s: in_seconds(sum(this.#files, 'cpu_ms')),
    }
  }

  close({ all }) {
    const sorted = [...this.#files].sort((a, b) => b.wall_ms - a.wall_ms)
    const rows = all ? sorted : sorted.slice(0, SLOWEST)
    console.log(`\n${all ? 'all files' : 'the slowest files'}\n${HEAD}\n${rows.map(line).join('\n')}`)
    console.log(`in ${seconds(Date.now() - this.#begun_ms)}, with ${seconds(sum(this.#files, 'cpu_ms'))} of CPU time`)
    if (this.#failed.size > 0) console.log(`failed: ${[...this.#failed].join(' ')}`)
    const failed = sum(this.#files, 'fail') + (this.#check ? 0 : 1)
    const skipped = sum(this.#files, 'skip')
    console.log(`${sum(this.#files, 'pass')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
    process.exitCode = failed > 0 || this.#failed.size > 0 ? 1 : 0
  }
}
