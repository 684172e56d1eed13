import type { RecognizerSettings, VoiceSettings } from '../../core/domain/speech/engines.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { ScriptServices } from './services.ts'

/** The engines that serve a call. */
interface Engines {
  readonly stt: RecognizerSettings | null
  readonly tts: VoiceSettings
  /** The engines that the application chose and that are ready; null: the operator's. */
  readonly chosen: { readonly stt: string | null; readonly tts: string | null }
  /** Sentences about engines that the application chose and that are no longer ready. */
  readonly missing: readonly string[]
}

/** What tells the engines of a call. */
export type EngineServices = Pick<ScriptServices, 'config' | 'snapshot'>

/** Returns the engines of the call's application, or the operator's where it chose none. */
export function enginesOf({ config, snapshot }: EngineServices, { row_now }: Pick<ScriptedCall, 'row_now'>): Engines {
  const application = snapshot().applications.get(row_now.application_id ?? '')
  const stt = config.stt_choices.find(({ engine }) => engine === application?.stt)
  const tts = config.tts_choices.find(({ engine }) => engine === application?.tts)
  const lacking = (name: string | null | undefined, found: unknown): string[] =>
    name && !found ? [`the engine ${name} of the voice application is not ready; the operator's serves`] : []
  return {
    stt: stt ?? config.stt,
    tts: tts ?? config.tts,
    chosen: { stt: stt?.engine ?? null, tts: tts?.engine ?? null },
    missing: [...lacking(application?.stt, stt), ...lacking(application?.tts, tts)],
  }
}

/** Whether an engine writes down what is said freely: pocketsphinx hears phrases. Null: the call's own engine. */
export function transcribes(
  services: EngineServices,
  call: Pick<ScriptedCall, 'row_now'>,
  named: string | null,
): boolean {
  if (named !== null) return named !== 'pocketsphinx'
  const { stt } = enginesOf(services, call)
  return (stt !== null && stt.engine !== 'pocketsphinx') || services.config.transcriber_url !== null
}
