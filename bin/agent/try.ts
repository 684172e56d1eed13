import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { systemClock } from '../../core/runtime/clock.ts'
import type { Settings } from '../../core/runtime/config.ts'
import { createHttpClient } from '../../core/runtime/http/index.ts'
import { StartRefused } from '../../core/runtime/start-refused.ts'
import { startRun } from '../../markup/interpreter/step.ts'
import type { StartFacts, StartRelay } from '../../markup/interpreter/types.ts'
import { createAudioThreads } from '../../media/files/audio-threads.ts'
import { createUrlAudio } from '../../media/files/url-audio.ts'
import { createVoices } from '../../media/files/voice.ts'
import { type ConnectWebSocket, createConnectWebSocket } from '../../media/forks/connect.ts'
import type { PlaySource } from '../../media/protocol/schema.ts'
import { Relay } from '../../media/relay/session.ts'
import { createRecognizers } from '../../media/speech/index.ts'
import { wavFile } from '../../media/speech/wav-file.ts'
import { fail, tell } from '../terminal.ts'
import { TerminalLine } from './line.ts'

const EVERYWHERE = ['0.0.0.0/0', '::/0']
const OWNER = 'terminal'
const LANGUAGE = 'en-US'
/** An answer that has not begun by then is not awaited any longer. */
const ANSWER_LIMIT_MS = 30_000
/** The silence after which the agent has finished. */
const OVER_MS = 1500
const LOOK_MS = 50

interface TryOptions {
  /** Writes what the caller heard to this WAV file. */
  readonly out?: string
}

/** Lets a person talk to the relay application that a document names. Resolves when the session is over. */
export async function tryAgent(text: string, facts: StartFacts, config: Settings, options: TryOptions): Promise<void> {
  const relay = relayOf(text, facts)
  const http = createHttpClient({ allow_private: config.allow_private_webhooks, user_agent: 'strowger-agent' })
  const audio = createAudioThreads()
  // The operator chooses the engines, so they may be in a private network.
  const engines = createHttpClient({ allow_private: EVERYWHERE, user_agent: 'strowger-agent' })
  const voices = createVoices(config, engines, audio)
  const urls = createUrlAudio(http, audio, { now: () => Date.now(), base_url: null })
  const line = new TerminalLine(systemClock)
  const load = async (source: PlaySource) => {
    if (source.kind !== 'speech' && source.kind !== 'url') throw new Error(`${source.kind} is not played here`)
    const found = await (source.kind === 'url'
      ? urls.get(source.url, OWNER)
      : voices.speak({ ...source, owner: OWNER }))
    const fitted = 'refused' in found ? found : await audio.fit(found.pcm, 8000, 0, OWNER)
    if ('refused' in fitted) return fitted
    return { pieces: [{ kind: 'pcm', samples: fitted.pcm.samples, rate_hz: 8000 } as const], endless: false }
  }
  const connect = createConnectWebSocket(config.allow_private_webhooks)
  const recognizers = createRecognizers(config, { http: engines, connect: createConnectWebSocket(EVERYWHERE) })
  const { stt_engine, tts_engine } = relay
  let over = false
  const ended = new Promise<void>(resolve => {
    const session = new Relay({
      request: {
        leg_id: 'terminal',
        relay_id: 'VXterminal',
        account_sid: facts.account_sid,
        call_sid: facts.call_sid,
        headers: {},
        setup: { callSid: facts.call_sid, from: facts.leg.from, to: facts.leg.to },
        url: relay.url,
        parameters: { ...relay.parameters },
        hints: [...relay.hints],
        greeting: relay.greeting,
        greeting_interruptible: relay.greeting_interruptible,
        tts_language: relay.tts_language,
        transcription_language: relay.transcription_language,
        voice: relay.voice,
        model: relay.model,
        languages: relay.languages.map(one => ({ ...one })),
        interruptible: relay.interruptible,
        sensitivity: relay.sensitivity,
        keys: relay.keys,
        report: relay.report,
        preemptible: relay.preemptible,
        profanity_filter: relay.profanity_filter,
        ...(relay.noise_suppression ? { noise_suppression: true } : {}),
        ...(stt_engine === undefined ? {} : { stt_engine }),
        ...(tts_engine === undefined ? {} : { tts_engine }),
      },
      stream: line,
      tap_prefix: 't',
      clock: systemClock,
      connect: watched(connect),
      load,
      recognizer: recognizers(stt_engine),
      sendDigits: digits => print(`the caller hears the keys ${digits}`),
      warned: (code, detail) => print(`warning ${code}: ${detail}`),
      turn: ({ total_ms, ...parts }) =>
        print(
          `turn ${total_ms} ms: ${Object.entries(parts)
            .map(([part, ms]) => `${part.replace('_ms', '')} ${ms}`)
            .join(', ')}`,
        ),
      ended({ reason, hand_off, error_code, detail }) {
        over = true
        const fault = error_code === null ? '' : ` ${error_code}: ${detail}`
        print(`${reason}${hand_off === null ? '' : ` with ${hand_off}`}${fault}`)
        resolve()
      },
    })
    line.onEvent = event => void session.onNative(event)
    const caller = {
      key: (digit: string) => session.key(digit),
      hangUp: () => session.stop(),
      over: () => over,
      voice: async (words: string) => {
        const pieces = await (words.toLowerCase().endsWith('.wav')
          ? audio.decode(readFileSync(words), 'audio/wav', OWNER)
          : voices.speak({ text: words, voice: 'man', language: LANGUAGE, owner: OWNER }))
        const fitted = 'refused' in pieces ? pieces : await audio.fit(pieces.pcm, 8000, 0, OWNER)
        if ('refused' in fitted) throw new StartRefused(`${words}: ${fitted.detail}`)
        return fitted.pcm.samples
      },
    }
    void converse(line, caller).catch((error: Error) => {
      print(error.message)
      fail()
      session.stop()
    })
  })
  await ended
  line.close()
  if (options.out !== undefined) writeFileSync(options.out, wavFile(joined(line.heard)))
  await Promise.all([http.close(), engines.close(), audio.close()])
}

const print = (line: string): void => void tell(`${line}\n`)

/** Returns the session that a document begins with. */
function relayOf(text: string, facts: StartFacts): StartRelay {
  const { commands } = startRun({ ...facts, entry: { kind: 'inline', text } })
  for (const command of commands) if (command.type === 'note') print(`${command.level}: ${command.detail}`)
  const relay = commands.find(command => command.type === 'start_relay')
  if (!relay) throw new StartRefused('the document does not begin with a <ConversationRelay> that can be started')
  return relay
}

/** Prints the messages of both sides. */
const watched =
  (connect: ConnectWebSocket): ConnectWebSocket =>
  async (...asked) => {
    const connected = await connect(...asked)
    if (!('socket' in connected)) return connected
    const { socket } = connected
    socket.on('message', data => print(`< ${String(data)}`))
    const send = socket.send.bind(socket)
    socket.send = (data: unknown) => {
      print(`> ${String(data)}`)
      send(String(data))
    }
    return connected
  }

interface CallerSide {
  key(digit: string): void
  hangUp(): void
  over(): boolean
  voice(words: string): Promise<Int16Array>
}

/**
 * Carries out what is typed, line by line: a key, a WAV file, or words. Each line waits until the agent has finished;
 * one that begins with `!` does not, and so interrupts. The end of the input hangs up.
 */
async function converse(line: TerminalLine, caller: CallerSide): Promise<void> {
  const until = async (holds: () => boolean, limit_ms: number): Promise<void> => {
    for (let waited = 0; !holds() && !caller.over() && waited < limit_ms; waited += LOOK_MS)
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
  }
  const finished = () => until(() => line.agent.silent_ms >= OVER_MS, Number.POSITIVE_INFINITY)
  /** Returns whether the agent has spoken since now. */
  const sounds = () => {
    const before_ms = line.agent.sounded_ms
    return () => line.agent.sounded_ms > before_ms
  }
  let answered = () => true
  const lines: string[] = []
  let closed = false
  const input = createInterface({ input: process.stdin })
  input.on('line', typed => lines.push(typed))
  input.on('close', () => {
    closed = true
  })
  await finished()
  for (;;) {
    await until(() => lines.length > 0 || closed, Number.POSITIVE_INFINITY)
    const typed = lines.shift()
    if (typed === undefined) break
    const at_once = typed.startsWith('!')
    const words = typed.replace(/^!/, '').trim()
    if (words === '') continue
    if (!at_once) await finished()
    if (caller.over()) break
    if (/^[0-9*#]$/.test(words)) {
      caller.key(words)
      answered = sounds()
      continue
    }
    line.say(await caller.voice(words))
    await until(() => !line.saying, Number.POSITIVE_INFINITY)
    answered = sounds()
    await until(answered, ANSWER_LIMIT_MS)
  }
  // The agent may still answer the last key.
  await until(answered, ANSWER_LIMIT_MS)
  await finished()
  input.close()
  caller.hangUp()
}

function joined(frames: readonly Int16Array[]): Int16Array {
  const all = new Int16Array(frames.reduce((sum, frame) => sum + frame.length, 0))
  let at = 0
  for (const frame of frames) {
    all.set(frame, at)
    at += frame.length
  }
  return all
}
