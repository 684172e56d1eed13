import { systemClock } from '../../../../core/runtime/clock.ts'
import { insertCall } from '../../../../core/state/calls/running-calls.ts'
import type { State } from '../../../../core/state/index.ts'
import type { Event, Recognize, StartTranscription } from '../../../../markup/interpreter/types.ts'
import type { MediaClient } from '../../../../media/protocol/client.ts'
import { MediaHub } from '../../../../signaling/b2bua/media.ts'
import { Recognitions } from '../../../../signaling/scripts/recognitions.ts'
import { ManualClock } from '../../../fuzz/edge/manual-clock.ts'
import { admissionWorld, NOW_MS } from '../../../support/admission-world.ts'
import t from '../../../support/harness/index.ts'

// Recognitions against a media worker whose events the test sends.

const COMMAND: StartTranscription = {
  type: 'start_transcription',
  id: 'words',
  track: 'both_tracks',
  language: 'en-US',
  ...{ name: null, inbound_label: null, outbound_label: null, model: null },
  ...{ partial_results: false, hints: [], profanity_filter: true, punctuation: true },
  status_callback: { url: 'https://app.example/words', method: 'POST' },
}

/** A worker that accepts everything. */
function worker() {
  const listeners = new Map<string, (fields: object) => void>()
  const asked: object[] = []
  const client = {
    on: (name: string, listener: (fields: object) => void) => listeners.set(name, listener),
    request: async (method: string, params: object) => asked.push({ method, ...params }),
  }
  const log = { warn: () => undefined, debug: () => undefined }
  const hub = new MediaHub(client as unknown as MediaClient, log as never)
  return { hub, asked, tells: (event: string, fields: object) => listeners.get(event)?.(fields) }
}

/** Returns the callbacks of a call, in order. */
async function told(state: State): Promise<Record<string, string>[]> {
  const rows = await state.db.selectFrom('outbox').select('parameters').orderBy('id').execute()
  return rows.map(({ parameters }) => JSON.parse(parameters))
}

t.test('a transcription tells the last words after its call has ended, and then that it has stopped', async t => {
  const w = await admissionWorld()
  t.teardown(() => w.close())
  const { state, project_id } = w
  await state.transaction(trx =>
    insertCall(
      trx,
      {
        ...{ sid: 'CA1', project_id, account_sid: 'AC1', origin: 'rest', direction: 'outbound-api', status: 'queued' },
        ...{ from_number: '+2342010000001', to_number: '+2348030000001', request: '{}', node_id: 'node_1' },
        queued_at: new Date(NOW_MS).toISOString(),
      },
      NOW_MS,
    ),
  )
  const { hub, asked, tells } = worker()
  let saved: Promise<unknown> = Promise.resolve()
  const noted: unknown[] = []
  const save = (work: Parameters<State['transaction']>[0]) => {
    saved = saved.then(() => state.transaction(work))
    return saved
  }
  const call = {
    ...{ sid: 'CA1', project_id, facts: { account_sid: 'AC1' }, row_now: { application_id: null } },
    ...{
      clock: systemClock,
      persist: save,
      persistCallbacks: save,
      event: (...fields: unknown[]) => noted.push(fields),
    },
  }
  const leg = { id: 'leg', ended: false, session: { hub } }
  const services = {
    config: { stt: null, stt_choices: [], tts: { engine: 'espeak-ng' }, tts_choices: [] },
    ...{ snapshot: () => ({ applications: new Map() }), calls: { activities: new Map() } },
  }
  const events: Event[] = []
  const recognitions = new Recognitions(services as never, { call, leg } as never, event => events.push(event))
  hub.listen(leg.id, event => recognitions.media(event))
  recognitions.transcribe(COMMAND, 'GT1')
  await new Promise(setImmediate)
  t.match(asked, [{ method: 'recognize.start', recognize_id: 'GT1', last_words: true }])

  const about = { leg_id: leg.id, recognize_id: 'GT1' }
  const said = (text: string) =>
    tells('recognize.result', { ...about, track: 'inbound', text, confidence: 1, final: true, language: null })
  tells('recognize.warning', { ...about, detail: 'the default model serves' })
  t.same(noted, [['warning', null, { detail: 'the default model serves' }]])
  said('hello')
  leg.ended = true
  recognitions.drop()
  hub.forget(leg.id)
  said('')
  said('good bye')
  tells('recognize.ended', { ...about, fault: null })
  said('too late')
  await saved
  t.match(await told(state), [
    { TranscriptionEvent: 'transcription-started' },
    { TranscriptionEvent: 'transcription-content', TranscriptionData: /hello/ },
    { TranscriptionEvent: 'transcription-content', TranscriptionData: /good bye/, Track: 'inbound_track' },
    { TranscriptionEvent: 'transcription-stopped', SequenceId: '4' },
  ])
  t.equal((await told(state)).length, 4)
  t.same([hub.listening, events.length, services.calls.activities.size], [0, 0, 0], 'nothing is left')
})

const GATHER: Recognize = {
  type: 'recognize',
  ...{ id: 'recognize-1', language: 'en-US', hints: [], model: null, enhanced: false },
  ...{ profanity_filter: true, speech_timeout_seconds: 1, max_speech_seconds: 60, partial: null },
}

t.test('a Gather hears on after noise, and its recognition ends with the words', async t => {
  const { hub, asked, tells } = worker()
  const clock = new ManualClock()
  const call = { sid: 'CA1', facts: { account_sid: 'AC1' }, row_now: { application_id: null }, clock }
  const leg = { id: 'leg', ended: false, session: { hub } }
  const services = {
    config: { stt: null, stt_choices: [], tts: { engine: 'espeak-ng' }, tts_choices: [] },
    ...{ snapshot: () => ({ applications: new Map() }), calls: { activities: new Map() } },
  }
  const events: string[] = []
  const recognitions = new Recognitions(services as never, { call, leg } as never, event =>
    events.push(`${event.type}${event.type === 'speech_result' ? ` "${event.text}"` : ''}`),
  )
  hub.listen(leg.id, event => recognitions.media(event))
  recognitions.recognize(GATHER)
  await new Promise(setImmediate)
  const { recognize_id } = asked[0] as { recognize_id: string }
  const about = { leg_id: leg.id, recognize_id }
  const starts = () => tells('recognize.started', { ...about, track: 'inbound' })
  const hears = (text: string) =>
    tells('recognize.result', { ...about, track: 'inbound', text, confidence: 1, final: true, language: null })
  const takes = () => events.splice(0)
  starts()
  hears('')
  t.same(takes(), ['speech_started', 'speech_result ""'])
  starts()
  clock.advance(60_000)
  t.same(takes(), ['speech_started', 'speech_result ""'], 'noise without an end')
  starts()
  t.equal(asked.length, 1, 'the worker still listens')
  hears('yes')
  hears('and no')
  clock.advance(60_000)
  t.same(takes(), ['speech_started', 'speech_result "yes"'])
  t.match(asked, [{ method: 'recognize.start' }, { method: 'recognize.stop', recognize_id }])
  t.equal(clock.pending, 0)
})
