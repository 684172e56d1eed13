import { readdirSync, statfsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from '../../support/harness/index.ts'

// Tests the parts of the runner that decide: which files share a process, which start next, and which a change reaches.

interface Group {
  readonly files: string[]
  readonly expected_ms: number
}
interface How {
  readonly alone?: boolean
  readonly expected_cpu_ms?: (file: string) => number
  readonly read: (path: string) => string
}
const load = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(resolve('scripts/test', name)).href)) as T
const { groupsOf } = await load<{
  groupsOf(files: string[], expected_ms: (file: string) => number, how: How): Group[]
}>('groups.mjs')
const { scratchFolder } = await load<{
  scratchFolder(machine: { memory: string; free: number }): string | undefined
}>('scratch.mjs')
const { reachedTests } = await load<{ reachedTests(changed: string[], sources: Map<string, string>): Set<string> }>(
  'changed.mjs',
)

interface Timed {
  readonly files: readonly string[]
  readonly started_at: number
  readonly expected_ms: number
  readonly expected_cpu_ms?: number
}
interface Core {
  readonly times: { user: number; nice: number; sys: number; idle: number; irq: number }
}
const { givesWay, Meter, nextGroup } = await load<{
  givesWay(group: Timed): boolean
  nextGroup(
    waiting: readonly Timed[],
    running: readonly Timed[],
    machine: { cores: number; room: number; idle: number; now: number },
  ): Timed | undefined
  Meter: new () => { look(now: number, cores: readonly Core[], priority: number): { idle: number; room: number } }
}>('schedule.mjs')

const A = 'test/unit/core/domain/a/a.test.ts'
const B = 'test/unit/core/domain/b/b.test.ts'
const STATE = 'test/unit/core/state/c.test.ts'
const FLOW = 'test/flows/d.test.ts'

t.test('unit tests of one area share a process, unless they touch the process or work long', async t => {
  const groups = (texts: Record<string, string>, ms: Record<string, number> = {}, alone = false) =>
    groupsOf([A, B, STATE, FLOW], file => ms[file] ?? 1000, { alone, read: path => texts[path] ?? '' }).map(
      ({ files }) => files,
    )
  t.same(groups({}), [[A, B], [STATE], [FLOW]])
  t.same(groups({}, {}, true), [[A], [B], [STATE], [FLOW]])
  t.same(groups({}, { [A]: 90_000 }), [[A], [B], [STATE], [FLOW]])
  const waiting = (cpu_ms: number) =>
    groupsOf([A, B], () => 30_000, { expected_cpu_ms: () => cpu_ms, read: () => '' }).map(({ files }) => files)
  t.same(waiting(2_000), [[A, B]], 'files that wait share one')
  t.same(waiting(25_000), [[A], [B]])
  for (const text of [
    `process.env['X'] = 'y'`,
    `process.chdir('/')`,
    `process.on('warning', f)`,
    `import { spawn } from 'node:child_process'`,
    '// #own-process',
  ])
    t.same(groups({ [B]: text }), [[A], [B], [STATE], [FLOW]], text)
  const platform = `import { sharedWorld } from '../support/shared-world.ts'`
  t.same(groups({ [A]: platform, [FLOW]: platform }), [[A, FLOW], [B], [STATE]], 'stories on one platform')
  t.same(groups({ [A]: platform, [FLOW]: `${platform} // #own-process` }), [[A], [B], [STATE], [FLOW]], 'but one')
  const long = groups(
    { [A]: platform, [B]: platform, [FLOW]: platform },
    { [A]: 120_000, [B]: 120_000, [FLOW]: 20_000 },
  )
  t.same(long, [[A, FLOW], [B], [STATE]], 'a short story joins the first platform that has time for it')
  const stories = ['test/flows/a.test.ts', 'test/adversary/b.test.ts', FLOW]
  const little = { expected_cpu_ms: () => 5_000, read: () => '' }
  const together = (ms: number) => groupsOf(stories, () => ms, little).map(({ files }) => files)
  t.same(together(20_000), [stories], 'stories with platforms of their own, one after the other')
  t.same(together(30_000), [stories.slice(0, 2), [FLOW]], 'but not for long')
  t.same(groups({ [B]: `const path = process.env['PATH']` })[0], [A, B], 'reading is not changing')
  t.same(groups({ [B]: `import { execFile } from 'node:child_process'` })[0], [A, B], 'a program that ends is none')
})

const NOW = 100_000
const timed = (file: string, expected_ms: number, expected_cpu_ms?: number): Timed => ({
  files: [file],
  started_at: 0,
  expected_ms,
  ...(expected_cpu_ms === undefined ? {} : { expected_cpu_ms }),
})
const next = (waiting: readonly Timed[], running: readonly Timed[], room: number, idle = room): Timed | undefined =>
  nextGroup(waiting, running, { cores: 2, room, idle, now: NOW })

t.test('files with live calls start while the machine has room for them, one after the other', async t => {
  const long = timed(FLOW, 60_000, 60_000)
  const short = timed(FLOW, 50_000, 5_000)
  const half = timed(FLOW, 50_000, 25_000)
  t.equal(next([long, short], [], 0), long, 'the longest first')
  t.equal(next([long, short], [{ ...short, started_at: NOW - 1000 }], 0), long, 'one on each core always fits')
  t.equal(next([long, short], [short, short], 0.5), long)
  t.equal(next([long, short], [short, short], 0.05), undefined, 'calls have the rest of the machine for their bursts')
  t.equal(next([long], [short, { ...short, started_at: NOW - 1000 }], 1), undefined, 'a platform starts')
  t.equal(next([long], [short, { ...short, started_at: NOW - 5000 }], 1), long)
  t.equal(next([long, short], [long, short], 1), short, 'more work would make calls late; one that waits fits')
  t.equal(next([half, short], [half, half, half, short], 1), short)
  t.equal(next([long, half, short], Array(3).fill(half), 1), half)
  t.equal(next([short], Array(11).fill(short), 1), short, 'many wait beside each other')
  t.equal(next([short], Array(12).fill(short), 1), undefined, 'memory and ports are bounded')
  t.equal(next([timed('test/cluster/a.test.ts', 60_000)], [half, half, half], 1), undefined, 'machines are live too')
})

t.test('a group that only works gives way to live calls', async t => {
  t.ok(givesWay(timed(STATE, 60_000, 60_000)))
  t.ok(givesWay(timed(STATE, Number.POSITIVE_INFINITY)))
  t.notOk(givesWay(timed(FLOW, 60_000, 60_000)), 'calls in real time')
  t.notOk(givesWay(timed(STATE, 60_000, 20_000)), 'waits for timers')
})

t.test('groups without live calls fill what the others leave', async t => {
  const works = timed(STATE, 60_000, 60_000)
  const live = timed(FLOW, 60_000, 60_000)
  const waits = timed(STATE, 60_000, 12_000)
  t.equal(next([works], [live, live], 0), works, 'one always runs')
  t.equal(next([works], [live, works], 0), undefined)
  t.equal(next([works, waits], [live, waits], 0), waits, 'a second one where the expected times leave room')
  t.equal(next([waits], [live, works], 0), undefined)
  t.equal(next([works], [works], 0), works, 'one on each core without live calls')
  t.equal(next([works], [works, works], 0), undefined)
  t.equal(next([works], [live, works, works], 0.2), works, 'and where a part of the machine is idle')
  t.equal(next([works], [live, works, works], 0.2, 0), undefined, 'what gives way fills the machine already')
  const begins = { ...waits, started_at: NOW - 1000 }
  t.equal(next([works], [live, works, begins], 0.2), undefined, 'unless what has just started may take it')
  t.equal(next([works, live], [works, works], 0), live, 'live calls wait for no other work')
  t.equal(next([works], [timed(STATE, Number.POSITIVE_INFINITY)], 1), works, 'the check works')
})

t.test('the room for live calls is what is idle and what gives way', async t => {
  const meter = new Meter()
  const cores = (user: number, nice: number, idle: number) => [{ times: { user, nice, sys: 0, idle, irq: 0 } }]
  t.same(meter.look(0, cores(1000, 1000, 1000), 0), { idle: 1, room: 1 }, 'nothing is known yet')
  t.same(meter.look(1000, cores(1500, 1250, 1250), 0), { idle: 0.25, room: 0.5 })
  t.same(meter.look(2000, cores(2500, 1250, 1250), 0), { idle: 0.125, room: 0.25 })
  const [idle, room] = [2500 / 3500, 2500 / 3500]
  t.same(meter.look(4500, cores(3500, 1250, 3750), 0), { idle, room }, 'what is longer ago counts no more')
  const gives_way = new Meter()
  gives_way.look(0, cores(1000, 1000, 1000), 5)
  t.same(gives_way.look(1000, cores(1500, 1250, 1250), 5), { idle: 0.25, room: 0.25 }, 'below a runner that gives way')
})

t.test('temporary files are in memory where there is plenty, and those of a killed run go', async t => {
  const GIB = 1024 ** 3
  const memory = t.testdir({ 'strowger-test-999999999-left': { 'a.sqlite': 'x' }, other: { kept: 'x' } })
  const { bavail, bsize } = statfsSync(memory)
  const roomy = bavail * bsize > 6 * GIB
  const folder = scratchFolder({ memory, free: 8 * GIB })
  const made = folder === undefined ? [] : [basename(folder)]
  t.equal(made.length, roomy ? 1 : 0)
  t.ok(made.every(name => name.startsWith(`strowger-test-${process.pid}-`)))
  if (roomy) t.same(readdirSync(memory).sort(), ['other', ...made], 'whose process lives, and what is not ours, stays')
  t.equal(scratchFolder({ memory, free: 5 * GIB }), undefined)
  t.equal(scratchFolder({ memory: `${memory}/none`, free: 8 * GIB }), undefined)
})

t.test('a change reaches tests by imports, by processes that they start, and by files that they read', async t => {
  const sources = new Map([
    ['core/rule.ts', ''],
    ['core/user.ts', `import { rule } from './rule.ts'`],
    ['bin/main.ts', `import { up } from './up.ts'`],
    ['bin/up.ts', `const plan = { script: 'core/process.js' }`],
    ['core/process.ts', `import { user } from './user.ts'`],
    ['test/support/world.ts', `const main = new URL('../../bin/main.js', import.meta.url)`],
    [A, `import { user } from '../../../../../core/user.ts'`],
    [B, `readFileSync('fixtures/b/one.txt')`],
    [STATE, `for (const name of readdirSync('fixtures/states')) t.ok(name)`],
    [FLOW, `import { world } from '../support/world.ts'`],
  ])
  const reached = (...changed: string[]) => [...reachedTests(changed, sources)].sort()
  t.same(reached('core/rule.ts'), [FLOW, A].sort())
  t.same(reached('fixtures/b/one.txt'), [B])
  t.same(reached('fixtures/states/x/y.json'), [STATE])
  t.same(reached(B), [B])
  t.same(reached('README.md'), [])
  t.same(reached('package.json'), [A, B, STATE, FLOW].sort())
})
