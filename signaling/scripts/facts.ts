import { ESPEAK_LANGUAGES, ESPEAK_VOICES } from '../../core/domain/speech/engines.ts'
import type { StartFacts } from '../../markup/interpreter/types.ts'
import type { ScriptEntry, ScriptHost } from '../b2bua/script-host.ts'

/** What a run knows at its start of its leg and of the engines of this platform. */
export function startFacts({ call, leg, direction }: ScriptHost, { kind, entry, fallback }: ScriptEntry): StartFacts {
  const { from, to, account_sid } = call.facts
  const { speech_url, recognizer_url, transcriber_url, siprec } = call.ctx.config
  return {
    kind,
    entry,
    fallback,
    leg: { answered: leg.answered, direction, sip: leg.sipDialog !== null || !leg.answered, from, to },
    account_sid,
    call_sid: call.sid,
    speech: {
      // An engine of the operator's choice knows its own voices: nothing is checked for it.
      voices: speech_url === null ? ESPEAK_VOICES : [],
      languages: speech_url === null ? ESPEAK_LANGUAGES : [],
      default_voice: 'man',
      default_language: 'en-US',
      recognizer: recognizer_url !== null,
      transcriber: recognizer_url !== null || transcriber_url !== null,
    },
    siprec_connectors: siprec.map(({ name }) => name),
  }
}
