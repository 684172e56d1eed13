import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from '../../support/harness/index.ts'
import type { Failure, FileEnd, Message } from '../../support/harness/report.ts'

// Runs small test files in processes of their own, as the runner does.

const HARNESS = 'build/test/support/harness'
const IMPORT = `import t from '${pathToFileURL(resolve(HARNESS, 'index.js')).href}'\n`
const WAIT = `import { until } from '${pathToFileURL(resolve('build/test/support/wait.js')).href}'\n`

interface Run {
  readonly code: number | null
  readonly ends: Record<string, FileEnd>
  readonly failures: { readonly file: string; readonly path: string; readonly detail: string }[]
}

async function run(t: Test, files: Record<string, string>, whenBegun?: (pid: number) => void): Promise<Run> {
  const folder = t.testdir()
  const paths = Object.entries(files).map(([name, text]) => {
    const path = join(folder, `${name}.test.mjs`)
    writeFileSync(path, IMPORT + text)
    return path
  })
  const child = spawn(process.execPath, [join(HARNESS, 'main.js'), ...paths], {
    stdio: ['ignore', 'inherit', 'pipe', 'pipe'],
    env: { ...process.env, STROWGER_TEST_REPORT: '3' },
  })
  let text = ''
  let told = ''
  child.stdio[3]?.on('data', chunk => {
    text += chunk
  })
  child.stderr?.on('data', chunk => {
    told += chunk
    if (told.includes('READY') && child.pid !== undefined) whenBegun?.(child.pid)
  })
  const code = await new Promise<number | null>(done => child.once('close', done))
  const nameOf = (file: string): string => file.replace(/^.*\/|\.test\.mjs$/g, '')
  const messages = text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as Message)
  const ends = messages.filter((one): one is FileEnd => one.event === 'end')
  const failures = messages.filter((one): one is Failure => one.event === 'failure')
  return {
    code,
    ends: Object.fromEntries(ends.map(end => [nameOf(end.file), end])),
    failures: failures.map(({ file, path, detail }) => ({ file: nameOf(file), path: path.join(' > '), detail })),
  }
}

t.test('counts and failures belong to the file whose test made them', async t => {
  const { code, ends, failures } = await run(t, {
    good: `t.test('a', async t => { t.equal(1, 1); t.match({ a: 'xyz', b: 2 }, { a: /y/ }) })
      t.test('b', { skip: 'not here' }, async t => t.fail('never'))`,
    bad: `t.test('outer', async t => {
        t.test('inner', async t => { t.same({ a: 1 }, { a: 2 }, 'sames'); t.pass() })
        await t.rejects(Promise.reject(new Error('x')), /y/, 'rejects')
      })
      t.test('throws', async () => { throw new Error('thrown on purpose') })`,
    after: `t.test('c', t => { t.ok(true); t.end() })`,
  })
  t.equal(code, 1)
  t.match(ends, { good: { pass: 2, fail: 0, skip: 1 }, bad: { pass: 1, fail: 3 }, after: { pass: 1, fail: 0 } })
  t.same(failures.map(({ file, path }) => [file, path]).sort(), [
    ['bad', 'outer > inner > sames'],
    ['bad', 'outer > rejects'],
    ['bad', 'throws > thrown on purpose'],
  ])
  t.match(
    failures.find(({ path }) => path.endsWith('sames'))?.detail,
    /-.*"a": 2[\s\S]*\+.*"a": 1[\s\S]*bad\.test\.mjs:\d+/,
  )
})

t.test('subtests run in order, buffered ones beside each other up to jobs, teardowns last first', async t => {
  const { failures, ends } = await run(t, {
    order: `
      const seen = []
      const step = () => new Promise(resolve => setImmediate(resolve))
      let active = 0, most = 0
      const one = name => t.test(name, { buffered: true }, async () => {
        most = Math.max(most, ++active); await step(); await step(); active--; seen.push(name) })
      t.jobs = 2
      one('a'); one('b'); one('c')
      t.test('alone', async t => {
        t.equal(active, 0, 'after the ones before it')
        t.teardown(() => seen.push('first given'))
        t.teardown(async () => { await step(); seen.push('last given') })
        seen.push('alone')
      })
      await one('d')
      t.same(seen, ['a', 'b', 'c', 'alone', 'last given', 'first given', 'd'])
      t.equal(most, 2)`,
  })
  t.same(failures, [])
  t.match(ends, { order: { pass: 3, fail: 0 } })
})

t.test('what no test catches, or asserts after its end, fails the test or the file that ran', async t => {
  const { code, failures, ends } = await run(t, {
    rejected: `t.test('waits for ever', async () => {
        setTimeout(() => Promise.reject(new Error('nobody catches this')))
        await new Promise(resolve => setTimeout(resolve, 1e6).unref())
      })
      t.test('the next one runs', async t => t.pass())`,
    late: `let kept
      await t.test('ends early', async t => { kept = t; t.pass() })
      kept.ok(true, 'late')`,
    broken: `import './no-such-module.mjs'`,
  })
  t.equal(code, 1)
  t.match(ends, { rejected: { pass: 1, fail: 1 }, late: { pass: 1, fail: 1 }, broken: { pass: 0, fail: 1 } })
  t.match(failures, [
    { file: 'rejected', path: 'waits for ever > unhandled rejection', detail: /nobody catches this/ },
    { file: 'late', path: 'ends early > late', detail: /after the end of its test/ },
    { file: 'broken', detail: /no-such-module/ },
  ])
})

t.test('a test that waits for what can no longer happen fails, and the next file runs', async t => {
  const { code, ends, failures } = await run(t, {
    idle: `t.test('waits for nobody', () => new Promise(() => undefined))
      t.test('the next one runs', async t => t.pass())`,
    endless: `${WAIT.replace('until', 'PATIENCE_MS, until')}
      t.test('looks for ever', () => until('an answer', () => new Promise(() => undefined), 50 - PATIENCE_MS))`,
    unheld: `import { createSocket } from 'node:dgram'
      t.test('waits for a datagram by a socket that holds nothing', async t => {
        const socket = createSocket('udp4')
        const heard = new Promise(resolve => socket.once('message', resolve))
        await new Promise(resolve => socket.bind(0, '127.0.0.1', resolve))
        const { port } = socket.unref().address()
        const sender = createSocket('udp4')
        setTimeout(() => sender.send('x', port, '127.0.0.1', () => sender.close()), 200).unref()
        await heard
        t.pass()
      })`,
  })
  t.equal(code, 1)
  t.match(ends, { idle: { pass: 1, fail: 1 }, endless: { fail: 1 }, unheld: { pass: 1, fail: 0 } })
  t.match(failures, [
    { file: 'idle', detail: /^nothing is left that could end this test/ },
    { file: 'endless', path: /timed out: an answer; the last look has not ended/ },
  ])
})

t.test('a test that reaches its time limit, or whose file does, says what it waits for', async t => {
  const inTime = await run(t, {
    limited: `${WAIT}
      let over = false
      t.test('slow', { timeout: 50 }, async () => { await until('the pigs fly', () => over, 1e6) })
      t.test('the next one runs', async t => { over = true; t.pass() })`,
  })
  t.match(inTime.failures, [{ path: /^slow > the time limit of 50 ms/, detail: /waits for: the pigs fly/ }])
  t.match(inTime.ends, { limited: { pass: 1, fail: 1 } })
  t.equal(inTime.failures.length, 1)

  const killed = await run(
    t,
    {
      hangs: `${WAIT}
        t.test('outer', async t => {
          await t.test('inner', async () => {
            const waits = until('hell freezes', () => false, 1e6)
            process.stderr.write('READY')
            await waits
          })
        })`,
    },
    pid => process.kill(pid, 'SIGTERM'),
  )
  t.equal(killed.code, 1)
  t.match(killed.failures, [
    { file: 'hangs', path: /^outer > inner > the time limit of the file/, detail: /waits for: hell freezes/ },
  ])
})
