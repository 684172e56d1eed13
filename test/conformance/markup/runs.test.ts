import { readFileSync } from 'node:fs'
import { replay } from '../../../markup/replay/replay.ts'
import t from '../../support/harness/index.ts'

/** Returns the recorded runs. Each begins with the line of its facts. */
function recordedRuns(): string[] {
  const runs: string[][] = []
  for (const line of readFileSync('fixtures/markup/runs.jsonl', 'utf8').trimEnd().split('\n')) {
    if (line.startsWith('{"facts":')) runs.push([])
    runs.at(-1)?.push(line)
  }
  return runs.map(lines => lines.join('\n'))
}

t.test('a hundred recorded runs replay byte for byte', async t => {
  const runs = recordedRuns()
  t.equal(runs.length, 100)
  for (const [index, log] of runs.entries()) {
    const replayed = replay(log)
    t.equal(replayed.same, true, `run ${index + 1}: ${replayed.same ? '' : JSON.stringify(replayed.difference)}`)
  }
})

t.test('replay reports a changed command at its line', async t => {
  for (const log of recordedRuns()) {
    const lines = log.split('\n')
    const at = lines.findLastIndex(line => /"commands":\[\{"type":"\w/.test(line))
    const changed = lines.with(at, (lines[at] ?? '').replace('"commands":[{"type":"', '"commands":[{"type":"x'))
    t.match(replay(changed.join('\n')), { same: false, difference: { line: at + 1, command: 0 } })
  }
})
