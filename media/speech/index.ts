import type { RecognizerSettings } from '../../core/domain/speech/engines.ts'
import type { HttpClient } from '../../core/runtime/http/index.ts'
import type { ConnectWebSocket } from '../forks/connect.ts'
import { deepgramRecognizer } from './deepgram.ts'
import { openAiRecognizer } from './openai.ts'
import { httpRecognizer } from './over-http.ts'
import { pocketsphinx } from './pocketsphinx.ts'
import type { Recognizer } from './recognizer.ts'
import { webSocketRecognizer } from './web-socket.ts'

/** Returns the recogniser of this installation; null without one. Adding an engine is a file and a line here. */
export function createRecognizer(
  settings: RecognizerSettings | null,
  ways: { readonly http: Pick<HttpClient, 'request'>; readonly connect: ConnectWebSocket },
): Recognizer | null {
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
