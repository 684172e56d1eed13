import { ESPEAK_LANGUAGES, ESPEAK_VOICES } from '../../core/domain/speech/engines.ts'
import type { StartFacts } from '../../markup/interpreter/types.ts'
import type { ScriptEntry, ScriptHost } from '../b2bua/script-host.ts'
import { type EngineServices, enginesOf, transcribes } from './engines.ts'

/** Returns the facts that a run starts with: its leg, and the speech engines of this platform. */
export function startFacts(
  services: EngineServices,
  { call, leg, direction }: ScriptHost,
  { kind, entry, fallback }: ScriptEntry,
): StartFacts {
  const { from, to, account_sid } = call.facts
  const { siprec, tts_choices, stt_choices } = services.config
  const { tts, stt } = enginesOf(services, call)
  const espeak = tts.engine === 'espeak-ng'
  return {
    kind,
    entry,
    fallback,
    leg: { answered: leg.answered, direction, sip: leg.sipDialog !== null || !leg.answered, from, to },
    account_sid,
    call_sid: call.sid,
    speech: {
      // The voices of an operator's own engine are unknown here, so none are checked.
      voices: espeak ? ESPEAK_VOICES : [],
      languages: espeak ? ESPEAK_LANGUAGES : [],
      default_voice: 'man',
      default_language: 'en-US',
      providers: { tts: tts.engine, stt: stt?.engine ?? null },
      choices: { tts: tts_choices.map(({ engine }) => engine), stt: stt_choices.map(({ engine }) => engine) },
      recognizer: stt !== null,
      transcriber: transcribes(services, call, null),
    },
    siprec_connectors: siprec.map(({ name }) => name),
  }
}
