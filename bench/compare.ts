import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { compare, figuresOf, turnOf } from './pairs.ts'

// Compares this tree with another one by running a benchmark of both. The speed of a shared machine varies more from
// minute to minute than most of our changes do. So both run at the same time, each on its own core (docs/testing.md).
//
//   npm run compare -- admission --against ../before [--pairs 16] [--figures full.] [-- options of the benchmark]
//
// The other tree must be built; running `npm run bench` in it once does that.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    against: { type: 'string' },
    pairs: { type: 'string', default: '16' },
    figures: { type: 'string', default: '' },
  },
})
const [subject, ...options] = positionals
const pairs = Number(values.pairs)
const others = values.against === undefined ? undefined : resolve(values.against)
if (subject === undefined || others === undefined) fail('npm run compare -- SUBJECT --against FOLDER [--pairs N]')
if (!(Number.isInteger(pairs) && pairs >= 2)) fail('--pairs must be a whole number of at least 2')
if (availableParallelism() < 2) fail('a comparison needs two cores')
for (const tree of [others, process.cwd()])
  if (!existsSync(programIn(tree, subject))) fail(`${programIn(tree, subject)} does not exist: build that tree first`)

const measured = new Map<string, [before: number, now: number][]>()
for (let index = 0; index < pairs; index++) {
  const [before, now] = await runPair(subject, others, index)
  for (const [name, figure] of before) {
    const other = now.get(name)
    if (!name.startsWith(values.figures) || other === undefined || !(figure > 0 && other > 0)) continue
    const list = measured.get(name) ?? []
    list.push([figure, other])
    measured.set(name, list)
  }
  if (index > 0) report(index + 1)
}

async function runPair(name: string, before: string, index: number) {
  const { before_core, starts_first } = turnOf(index)
  const start = {
    before: () => run(before, name, before_core),
    now: () => run(process.cwd(), name, 1 - before_core),
  }
  if (starts_first === 'before') return Promise.all([start.before(), start.now()])
  const now = start.now()
  return Promise.all([start.before(), now])
}

async function run(tree: string, name: string, core: number): Promise<ReadonlyMap<string, number>> {
  const file = join(tree, 'bench/results', `${name}.json`)
  rmSync(file, { force: true })
  const args = ['-c', String(core), process.execPath, programIn(tree, name), ...options]
  // A benchmark that exceeds a limit exits with 1, but its results are valid.
  await once(spawn('taskset', args, { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] }), 'exit')
  if (!existsSync(file)) fail(`${name} in ${tree} ended without results`)
  return figuresOf(JSON.parse(readFileSync(file, 'utf8')))
}

function programIn(tree: string, name: string): string {
  return join(tree, 'build/bench', name, 'main.js')
}

function report(done: number): void {
  console.log(`\n${subject}, ${done} pairs; before is ${others}`)
  for (const [name, list] of measured) {
    if (list.length < 2) continue
    const { before, now, change_percent, error_percent } = compare(list)
    const change = `${change_percent >= 0 ? '+' : ''}${change_percent.toFixed(1)} % ± ${error_percent.toFixed(1)}`
    console.log(`${name.padEnd(40)} ${before.toFixed(2).padStart(10)} -> ${now.toFixed(2).padStart(10)}  ${change}`)
  }
}

function fail(sentence: string): never {
  console.error(sentence)
  process.exit(2)
}
