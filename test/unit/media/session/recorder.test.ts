import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Door } from '../../../../core/runtime/doors.ts'
import type { MediaLeg } from '../../../../media/session/leg.ts'
import { OpenFiles } from '../../../../media/session/open-files.ts'
import { Recorder } from '../../../../media/session/recorder.ts'
import type { Session } from '../../../../native/index.ts'
import t, { type Test } from '../../../support/harness/index.ts'

/** A recording that runs on a data plane which obeys when the test says so. */
async function running(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'strowger-recorder-'))
  const recordings = new Door(folder)
  t.teardown(async () => {
    recordings.close()
    await rm(folder, { recursive: true })
  })
  const commands: unknown[][] = []
  const session = {
    record: () => undefined,
    pauseRecord: (...command: unknown[]) => void commands.push(command),
  } as unknown as Session
  const recorder = new Recorder(
    { data_dir: folder, recordings, nativeId: () => 'native', files: new OpenFiles() },
    () => undefined,
  )
  const request = { recording_id: 'RE1', session_id: 's', file: join(folder, 'a.wav'), left: 'a', right: null }
  const how = { channels: 1, what: 'received', max_ms: null, silence_ms: null, finish_keys: '', beep: false } as const
  recorder.start({ ...request, ...how, trim: false }, session, { stream: {} } as unknown as MediaLeg, null)
  const answers: string[] = []
  return {
    recorder,
    commands,
    answers,
    ask: (what: string, paused: 'silent' | 'skipped' | null) =>
      recorder.pause('RE1', paused).then(there => answers.push(`${what}: ${there}`)),
  }
}

const obeyed = { type: 'record_changed', recording_id: 'native' } as const

t.test('a pause is answered when the packet thread has obeyed, not before', async t => {
  const { recorder, commands, answers, ask } = await running(t)
  const paused = ask('paused', 'skipped')
  const resumed = ask('resumed', null)
  t.same(commands, [
    ['native', true, false],
    ['native', false, false],
  ])
  await new Promise(resolve => setImmediate(resolve))
  t.same(answers, [], 'the packet thread may still record')
  recorder.onNative(obeyed)
  await paused
  t.same(answers, ['paused: true'])
  recorder.onNative(obeyed)
  await resumed
  t.same(answers, ['paused: true', 'resumed: true'])
})

t.test('the end of a recording answers those who wait, and nobody pauses it after that', async t => {
  const { recorder, answers, ask } = await running(t)
  const paused = ask('paused', 'silent')
  recorder.onNative({
    type: 'record_ended',
    recording_id: 'native',
    reason: 'leg_closed',
    key: '',
    detail: '',
    duration_ms: 20,
    bytes: 364,
    sha256: '',
    empty: false,
    pauses: [],
  })
  await paused
  await ask('late', 'silent')
  t.same(answers, ['paused: true', 'late: false'])
})
