import { corpus } from './main.ts'
import { randomOf } from './mutate.ts'
import { trial } from './trial.ts'

/** Logs of `count` runs of fixture documents with callers who do anything: what fixtures/markup/runs.jsonl holds. */
export function recordRuns(count: number, seed: number): string[] {
  const documents = corpus().filter(text => text.length < 1500)
  const logs: string[] = []
  for (let i = 0; logs.length < count; i++) {
    const document = documents[i % documents.length]
    const { came_to, log } = trial(document ?? '', randomOf(seed + i))
    const steps = log.split('\n').length
    if (came_to !== 'refused' && steps > 3 && log.length < 8000) logs.push(log)
  }
  return logs
}

// node build/test/fuzz/markup/record.js > fixtures/markup/runs.jsonl: only when commands were changed on purpose.
if (process.argv[1]?.endsWith('fuzz/markup/record.js')) process.stdout.write(`${recordRuns(100, 1).join('\n')}\n`)
