import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, linkSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

// Tests how the set-up runs its steps: each once, beside others, never by two at a time, and wholly or again.

interface Step {
  name: string
  needs?: string[]
  /** A shell script. `$1` is the folder. */
  script: string
  remedy?: string
  gives_way?: boolean
}

const STEPS = pathToFileURL(resolve('scripts/setup/steps.mjs')).href

/** A folder in which each step reads `<name>.in` and must leave `<name>.out`; `log` has a line for each run of one. */
function tree(t: Test, steps: Step[]) {
  const folder = t.testdir(Object.fromEntries(steps.map(({ name }) => [`${name}.in`, '1'])))
  const file = (name: string): string => join(folder, name)
  writeFileSync(
    file('setup.mjs'),
    `import { runSteps } from ${JSON.stringify(STEPS)}
    import { appendFileSync } from 'node:fs'
    const steps = ${JSON.stringify(steps)}.map(({ script, ...step }) => ({
      ...step, inputs: () => [step.name + '.in'], outputs: [step.name + '.out'], stamp: 'stamps/' + step.name,
      work: (run, finished) => {
        appendFileSync('log', step.name + (finished ? ' again' : '') + '\\n')
        return run('sh', ['-c', script])
      },
    }))
    process.exitCode = await runSteps(steps, text => console.error(text)) ? 0 : 1`,
  )
  return {
    file,
    write: (name: string, text: string) => writeFileSync(file(name), text),
    read: (name: string): string => readFileSync(file(name), 'utf8'),
    /** Returns the steps that ran since the last call, in order of their start. */
    ran: (): string[] => {
      const lines = existsSync(file('log')) ? readFileSync(file('log'), 'utf8').split('\n').filter(Boolean) : []
      rmSync(file('log'), { force: true })
      return lines
    },
    start: () => setUp(folder),
    run: () => setUp(folder).ended,
  }
}

function setUp(folder: string): { child: ChildProcess; ended: Promise<{ status: number | null; printed: string }> } {
  const child = spawn(process.execPath, ['setup.mjs'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    printed += text
  })
  return { child, ended: once(child, 'close').then(([status]) => ({ status, printed })) }
}

/** A script that waits until the file `name` is there. */
const awaits = (name: string): string => `until [ -e ${name} ]; do sleep 0.1; done`

t.test('a step runs once, and again when its input changes or its output is gone', async t => {
  const { run, ran, write, file } = tree(t, [
    { name: 'a', script: 'cp a.in a.out' },
    { name: 'b', needs: ['a'], script: 'cp a.out b.out' },
  ])
  t.equal((await run()).status, 0)
  t.same(ran(), ['a', 'b'])
  t.same(await run(), { status: 0, printed: '' }, 'a finished tree prints nothing')
  write('b.in', '2')
  await run()
  t.same(ran(), ['b again'])
  rmSync(file('a.out'))
  await run()
  t.same(ran(), ['a again'])
})

t.test('steps that do not need each other run beside each other', async t => {
  const { run } = tree(t, [
    { name: 'a', script: `touch a.out; ${awaits('b.out')}` },
    { name: 'b', script: `touch b.out; ${awaits('a.out')}` },
  ])
  t.equal((await run()).status, 0)
})

t.test('a step that gives way has a lower priority', async t => {
  const { run, read } = tree(t, [
    { name: 'long', script: 'nice > long.out' },
    { name: 'short', script: 'nice > short.out', gives_way: true },
  ])
  t.equal((await run()).status, 0)
  const [long, short] = [Number(read('long.out')), Number(read('short.out'))]
  t.equal(short, Math.min(long + 10, 19))
})

t.test('a failed step prints its output and what to do, and ends the others, which run again later', async t => {
  const { run, ran, read, write } = tree(t, [
    { name: 'good', script: 'touch good.out' },
    { name: 'bad', needs: ['good'], script: `${awaits('pid')}; echo no such library; exit 3`, remedy: 'Install it.' },
    { name: 'slow', script: 'echo $$ > pid.new; mv pid.new pid; sleep 600 & wait; touch slow.out' },
    { name: 'after', needs: ['bad'], script: 'touch after.out' },
  ])
  const { status, printed } = await run()
  t.equal(status, 1)
  t.match(printed, /no such library\nbad: failed: sh -c .*exit 3\nInstall it\.\n$/)
  t.same(ran().sort(), ['bad', 'good', 'slow'])
  t.throws(() => process.kill(Number(read('pid')), 0), 'the command of the other step has ended')
  write('bad.in', 'mended')
  t.equal((await run()).status, 1)
  t.same(ran().sort(), ['bad', 'slow'])
})

t.test('a step whose command leaves no output has failed', async t => {
  const { run } = tree(t, [{ name: 'a', script: 'true' }])
  const { status, printed } = await run()
  t.equal(status, 1)
  t.match(printed, /a: failed: a \(no a\.out\)/)
})

t.test('a step that was killed is not done, even when its inputs return to those of an earlier success', async t => {
  const { run, start, ran, read, write, file } = tree(t, [
    {
      name: 'a',
      script: `grep -q 1 a.in || { echo half > a.out; touch begun; ${awaits('go')}; exit 1; }; cp a.in a.out`,
    },
  ])
  await run()
  write('a.in', '2')
  const { child, ended } = start()
  await until('the step has begun', () => existsSync(file('begun')))
  child.kill('SIGKILL')
  await ended
  t.same(ran(), ['a', 'a again'])
  write('a.in', '1')
  const next = start()
  next.child.stderr?.once('data', () => write('go', ''))
  t.equal((await next.ended).status, 0)
  t.same(ran(), ['a'])
  t.equal(read('a.out'), '1')
})

t.test('two set-ups at once do the work once', async t => {
  const { start, ran, write, file } = tree(t, [{ name: 'a', script: `touch begun; ${awaits('go')}; touch a.out` }])
  const first = start()
  await until('the step has begun', () => existsSync(file('begun')))
  const second = start()
  second.child.stderr?.once('data', () => write('go', ''))
  const both = await Promise.all([first.ended, second.ended])
  t.same(
    both.map(({ status }) => status),
    [0, 0],
  )
  t.match(both[1].printed, /^another set-up works in this folder; waiting for it to end\n$/)
  t.same(ran(), ['a'])
})

t.test('after a kill, the next set-up waits for the command that still runs', async t => {
  const { start, ran, write, file } = tree(t, [{ name: 'a', script: `touch begun; ${awaits('go')}; touch a.out` }])
  const first = start()
  await until('the step has begun', () => existsSync(file('begun')))
  first.child.kill('SIGKILL')
  const second = start()
  second.child.stderr?.once('data', () => {
    t.notOk(existsSync(file('a.out')))
    write('go', '')
  })
  const { status, printed } = await second.ended
  t.equal(status, 0)
  t.match(printed, /^another set-up works/)
  t.same(ran(), ['a', 'a'])
})

t.test('Ctrl-C ends the commands', async t => {
  const { start, read, file } = tree(t, [{ name: 'a', script: 'echo $$ > pid.new; mv pid.new pid; sleep 600 & wait' }])
  const { child, ended } = start()
  await until('the step has begun', () => existsSync(file('pid')))
  child.kill('SIGINT')
  const { status, printed } = await ended
  t.equal(status, 1)
  t.match(printed, /set-up: ended by SIGINT\n$/)
  t.throws(() => process.kill(Number(read('pid')), 0))
})

t.test('a file is replaced, so processes that have opened it keep what they opened', async t => {
  const { replaceFile } = (await import(STEPS)) as { replaceFile(from: string, to: string): void }
  const folder = t.testdir({ made: 'new', place: 'old' })
  linkSync(join(folder, 'place'), join(folder, 'linked'))
  const opened = openSync(join(folder, 'place'), 'r')
  t.teardown(() => closeSync(opened))
  replaceFile(join(folder, 'made'), join(folder, 'place'))
  t.equal(readFileSync(opened, 'utf8'), 'old')
  t.equal(readFileSync(join(folder, 'linked'), 'utf8'), 'old', 'of another tree')
  t.equal(readFileSync(join(folder, 'place'), 'utf8'), 'new')
  t.same(readdirSync(folder).sort(), ['linked', 'made', 'place'])
})
