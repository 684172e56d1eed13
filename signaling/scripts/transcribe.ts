import { newId } from '../../core/runtime/ids.ts'
import type { DocumentTarget, RecordingFacts } from '../../markup/interpreter/types.ts'
import type { Leg } from '../b2bua/leg.ts'
import { MediaRefusal } from '../b2bua/media.ts'
import type { ScriptServices } from './services.ts'
import type { SharedScript } from './shared-script.ts'
import { queueCallback } from './tell.ts'

/** The timeout for a transcription, longer than the engine's own. */
const LIMIT_MS = 150_000

/**
 * Transcribes a finished recording for the transcription callback of Record (voice-compat.md §10). It may continue
 * after the script and the call have ended. The result is also a call event, to which `TranscriptionUrl` leads.
 */
export function transcribe(
  { config }: Pick<ScriptServices, 'config'>,
  { call, leg }: SharedScript['host'],
  recording: RecordingFacts,
  file: string,
  callback: DocumentTarget | null,
): void {
  const { hub }: Leg['session'] = leg.session
  const { account_sid } = call.facts
  const sid = `TR${newId.uuid().replaceAll('-', '')}`
  let over = false
  const done = (text: string | null, detail: string | null): void => {
    if (over) return
    over = true
    hub.forget(recording.sid)
    limit.cancel()
    const about = { transcription: sid, recording: recording.sid }
    if (text === null) call.event('warning', 13617, { ...about, detail: `not transcribed: ${detail}` })
    else call.event('state', null, { ...about, what: 'transcribed', text })
    if (!callback) return
    void queueCallback(call, callback, {
      ...call.parameters(),
      TranscriptionSid: sid,
      TranscriptionText: text ?? '',
      TranscriptionStatus: text === null ? 'failed' : 'completed',
      TranscriptionUrl: `${config.base_url}/2010-04-01/Accounts/${account_sid}/Calls/${call.sid}/Events.json`,
      RecordingSid: recording.sid,
      RecordingUrl: recording.url,
    })
  }
  const limit = call.clock.after(LIMIT_MS, () => done(null, 'the engine did not answer'))
  hub.listen(recording.sid, event => {
    if (event.event === 'transcription.ended') done(event.text, event.fault)
  })
  hub
    .request('recording.transcribe', {
      recording_id: recording.sid,
      file,
      language: 'en-US',
      owner: call.project_id,
    })
    .catch(error => done(null, error instanceof MediaRefusal ? error.detail : String(error)))
}
