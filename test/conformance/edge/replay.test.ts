import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import t from '../../support/harness/index.ts'
import { FLOWS, SKIPPED } from './flows.ts'
import { replay } from './replay.ts'
import { readTranscript } from './transcript.ts'

// Replays every transcript of a real drachtio-server against the embedded edge, which must send the same control
// messages and the same SIP, except for identifiers. flows.ts lists deliberate differences, each with its decision.

const folder = join(process.cwd(), 'fixtures/drachtio-transcripts')
const files = readdirSync(folder)
  .filter(name => name.endsWith('.txt'))
  .sort()

t.test('in every transcript the edge sends what the reference sent', { timeout: 280_000 }, async t => {
  // Transcripts mostly wait for timers.
  t.jobs = availableParallelism() * 8
  let passed = 0
  let noted = 0
  let failed = 0
  for (const file of files) {
    const skip = SKIPPED[file]
    if (skip !== undefined) {
      t.test(file, { skip }, async () => undefined)
      continue
    }
    t.test(file, { buffered: true }, async t => {
      const result = await replay(readTranscript(join(folder, file)), FLOWS[file])
      for (const fault of result.faults) t.fail(fault)
      for (const note of new Set(result.noted)) t.comment(note)
      t.equal(result.faults.length, 0, `${result.compared} messages agree`)
      if (result.faults.length > 0) failed++
      else passed++
      if (result.faults.length === 0 && result.noted.length > 0) noted++
    })
  }
  t.teardown(() => {
    const skipped = Object.keys(SKIPPED).length
    t.comment(
      `transcripts: ${passed} passed (${noted} of them with deliberate differences), ${skipped} skipped, ${failed} failed`,
    )
  })
})
