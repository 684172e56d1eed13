import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seeded } from '../../../bench/random.ts'
import { mutate, pick } from './mutate.ts'
import { trial } from './trial.ts'

/** Returns all fixture documents. Mutations start from them. */
function corpus(): string[] {
  return ['fixtures/markup/good', 'fixtures/markup/bad'].flatMap(folder =>
    readdirSync(folder)
      .filter(name => name.endsWith('.xml'))
      .sort()
      .map(name => readFileSync(join(folder, name), 'utf8')),
  )
}

interface Seen {
  refused: number
  warned: number
  clean: number
  /** The document that took the most processor time. Wall-clock time would depend on what else the machine does. */
  slowest: { ms: number; seed: number }
}

/** Runs `count` mutated documents. Throws at the first that violates an invariant, with its seed and text. */
export function fuzz(count: number, seed: number): Seen {
  // The few documents of 64 KiB cost as much as thousands of others. Other tests cover them.
  const documents = corpus().filter(text => text.length < 10_000)
  const seen: Seen = { refused: 0, warned: 0, clean: 0, slowest: { ms: 0, seed } }
  for (let i = 0; i < count; i++) {
    const random = seeded(seed + i)
    const text = mutate(pick(random, documents), documents, random)
    const before = process.cpuUsage()
    try {
      seen[trial(text, random).came_to]++
    } catch (error) {
      throw new Error(`seed ${seed + i}: ${error instanceof Error ? error.stack : error}\n${text.slice(0, 2000)}`)
    }
    const { user, system } = process.cpuUsage(before)
    const ms = Math.round((user + system) / 1000)
    if (ms > seen.slowest.ms) seen.slowest = { ms, seed: seed + i }
  }
  return seen
}

/** Returns logs of `count` runs of fixture documents with random callers, for fixtures/markup/runs.jsonl. */
function recordRuns(count: number, seed: number): string[] {
  const documents = corpus().filter(text => text.length < 1500)
  const logs: string[] = []
  for (let i = 0; logs.length < count; i++) {
    const document = documents[i % documents.length]
    const { came_to, log } = trial(document ?? '', seeded(seed + i))
    if (came_to !== 'refused' && log.split('\n').length > 3 && log.length < 8000) logs.push(log)
  }
  return logs
}

// node build/test/fuzz/markup/main.js --count N --seed N: a finding throws, so the exit code is 1.
// With --record N it prints logs for fixtures/markup/runs.jsonl. Record them again only after a deliberate change of
// commands.
if (process.argv[1]?.endsWith('fuzz/markup/main.js')) {
  const { values } = parseArgs({
    options: { count: { type: 'string' }, seed: { type: 'string' }, record: { type: 'string' } },
  })
  const count = Number(values.count ?? 500_000)
  const seed = Number(values.seed ?? 1)
  if (values.record) process.stdout.write(`${recordRuns(Number(values.record), seed).join('\n')}\n`)
  else {
    const began = performance.now()
    const seen = fuzz(count, seed)
    const seconds = Math.round((performance.now() - began) / 1000)
    process.stdout.write(`${JSON.stringify({ count, seed, ...seen, seconds })}\n`)
  }
}
