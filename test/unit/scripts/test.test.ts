import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from '../../support/harness/index.ts'

// Tests the parts of the runner that decide: which files share a process, which start next, and which a change reaches.

interface Group {
  readonly files: string[]
  readonly expected_ms: number
}
interface How {
  readonly alone?: boolean
  readonly read: (path: string) => string
}
const load = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(resolve('scripts/test', name)).href)) as T
const { groupsOf } = await load<{
  groupsOf(files: string[], expected_ms: (file: string) => number, how: How): Group[]
}>('groups.mjs')
const { reachedTests } = await load<{ reachedTests(changed: string[], sources: Map<string, string>): Set<string> }>(
  'changed.mjs',
)

interface Timed {
  readonly files: readonly string[]
  readonly expected_ms: number
  readonly expected_cpu_ms?: number
}
const { givesWay, nextGroup } = await load<{
  givesWay(group: Timed): boolean
  nextGroup(waiting: readonly Timed[], running: readonly Timed[], cores: number): Timed | undefined
}>('schedule.mjs')

const A = 'test/unit/core/domain/a/a.test.ts'
const B = 'test/unit/core/domain/b/b.test.ts'
const STATE = 'test/unit/core/state/c.test.ts'
const FLOW = 'test/flows/d.test.ts'

t.test('unit tests of one area share a process, unless they touch the process or take long', async t => {
  const groups = (texts: Record<string, string>, ms: Record<string, number> = {}, alone = false) =>
    groupsOf([A, B, STATE, FLOW], file => ms[file] ?? 1000, { alone, read: path => texts[path] ?? '' }).map(
      ({ files }) => files,
    )
  t.same(groups({}), [[A, B], [STATE], [FLOW]])
  t.same(groups({}, {}, true), [[A], [B], [STATE], [FLOW]])
  t.same(groups({}, { [A]: 60_000 }), [[A], [B], [STATE], [FLOW]])
  for (const text of [
    `process.env['X'] = 'y'`,
    `process.chdir('/')`,
    `process.on('warning', f)`,
    `import { spawn } from 'node:child_process'`,
    '// #own-process',
  ])
    t.same(groups({ [B]: text }), [[A], [B], [STATE], [FLOW]], text)
  const platform = 'const w = await sharedWorld(t)'
  t.same(groups({ [A]: platform, [FLOW]: platform }), [[A, FLOW], [B], [STATE]], 'stories on one platform')
  t.same(groups({ [B]: `const path = process.env['PATH']` })[0], [A, B], 'reading is not changing')
})

const timed = (file: string, expected_ms: number, expected_cpu_ms?: number): Timed => ({
  files: [file],
  expected_ms,
  ...(expected_cpu_ms === undefined ? {} : { expected_cpu_ms }),
})

t.test('a group that mostly waits leaves its core to another, and one that works does not', async t => {
  const works = timed(FLOW, 60_000, 60_000)
  const waits = timed(FLOW, 50_000, 5_000)
  const unknown = timed(FLOW, Number.POSITIVE_INFINITY)
  t.equal(nextGroup([works, waits], [], 2), works, 'the longest comes first')
  t.equal(nextGroup([works, waits], [works], 2), waits, 'a shorter one that fits overtakes')
  t.equal(nextGroup([works, waits], [waits, waits], 2), works)
  t.equal(nextGroup([waits], Array(6).fill(waits), 2), undefined, 'memory and ports are bounded too')
  t.equal(nextGroup([works, waits], [works, waits], 2), waits, 'calls have the rest of the machine for their bursts')
  t.equal(nextGroup([works, waits], [works, waits, waits], 2), undefined)
  t.equal(nextGroup([works], [unknown], 2), undefined, 'a group without times takes a core')
  t.equal(nextGroup([timed(FLOW, 60_000, 150_000)], [], 1)?.expected_cpu_ms, 150_000)
})

t.test('a group that only works gives way to live calls, and fills what they leave', async t => {
  const works = timed(STATE, 60_000, 60_000)
  const live = timed(FLOW, 60_000, 60_000)
  const waits = timed(STATE, 60_000, 20_000)
  t.ok(givesWay(works))
  t.notOk(givesWay(live), 'calls in real time')
  t.notOk(givesWay(waits), 'waits for timers')
  t.equal(nextGroup([works], [live], 2), works)
  t.equal(nextGroup([works], [live, works], 2), undefined, 'one at once beside live calls')
  t.equal(nextGroup([works], [works], 2), works, 'one on each core without them')
  t.equal(nextGroup([works, live], [works], 2), works, 'the longest first')
  t.equal(nextGroup([works, live], [works, works], 2), live, 'live calls wait for no other work')
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
