import type { RecognizerSettings, SpeechEngines } from '../../core/domain/speech/engines.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { ConnectWebSocket } from '../forks/connect.ts'
import { deepgramRecognizer } from './deepgram.ts'
import { openAiRecognizer } from './openai.ts'
import { httpRecognizer } from './over-http.ts'
import { pocketsphinx } from './pocketsphinx.ts'
import type { Recognizer } from './recognizer.ts'
import { webSocketRecognizer } from './web-socket.ts'

interface Ways {
  readonly http: Pick<HttpClient, 'request'>
  readonly connect: ConnectWebSocket
}

/** Returns the recogniser of a name, or the operator's for an unknown or missing one; null when there is none. */
export type Recognizers = (engine?: string) => Recognizer | null

export function createRecognizers(
  { stt, stt_choices }: Pick<SpeechEngines, 'stt' | 'stt_choices'>,
  ways: Ways,
): Recognizers {
  const made = new Map(stt_choices.map(settings => [settings.engine as string, createRecognizer(settings, ways)]))
  const own = (stt && made.get(stt.engine)) ?? createRecognizer(stt, ways)
  return engine => (engine === undefined ? own : (made.get(engine) ?? own))
}

/** Returns a recogniser; null without one. Adding an engine is a file and a line here. */
export function createRecognizer(settings: RecognizerSettings | null, ways: Ways): Recognizer | null {
  switch (settings?.engine) {
    case undefined:
      return null
    case 'pocketsphinx':
      return pocketsphinx()
    case 'url':
      return /^wss?:/i.test(settings.url)
        ? webSocketRecognizer(settings.url, ways.connect)
        : httpRecognizer(settings.url, ways.http)
    case 'openai':
      return openAiRecognizer(settings, ways.http)
    case 'deepgram':
      return deepgramRecognizer(settings, ways.connect)
  }
}
