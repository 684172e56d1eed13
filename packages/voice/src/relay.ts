/** Sessions of `<Connect><ConversationRelay>`: the platform hears and speaks, this program reads and writes text. */

/** A WebSocket as `ws`, browsers and Node.js have it. */
export interface RelaySocket {
  send(text: string): void
  close(): void
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void
  addEventListener(type: 'close', listener: () => void): void
}

/** What caller and application may interrupt a phrase with. */
type Interruptible = 'none' | 'dtmf' | 'speech' | 'any'

interface Manner {
  /** What stops the phrase; the setting of the document unless given. */
  readonly interruptible?: Interruptible
  /** Whether the next turn stops the phrase. */
  readonly preemptible?: boolean
  /** BCP 47 tag of the language in which it is spoken. */
  readonly lang?: string
}

export interface RelaySetup {
  readonly sessionId: string
  readonly callSid: string
  readonly from: string
  readonly to: string
  /** The `<Parameter>` elements of the document. */
  readonly customParameters: Readonly<Record<string, string>>
}

interface Prompt {
  readonly voicePrompt: string
  /** BCP 47 tag of the language. */
  readonly lang: string
  /** False for what the recognizer may still change. */
  readonly last: boolean
}

interface Interruption {
  readonly utteranceUntilInterrupt: string
  readonly durationUntilInterruptMs: number
}

export interface RelaySession {
  /** What the platform told of the call. */
  readonly setup: RelaySetup
  /** Aborts when the caller interrupts, speaks again, or is gone: give it to the model that writes the answer. */
  readonly signal: AbortSignal
  /** Says a text as a whole turn. */
  say(text: string, manner?: Manner): void
  /** Says tokens as they come, and ends the turn with the last. Stops reading when the turn is interrupted. */
  stream(tokens: AsyncIterable<string> | Iterable<string>, manner?: Manner): Promise<void>
  /** Plays a file at an http(s) URL. `loop` 0 plays it until something stops it. */
  play(source: string, options?: Manner & { readonly loop?: number }): void
  /** Sends keys to the caller: `0-9 * # w`. */
  sendDigits(digits: string): void
  language(languages: { readonly ttsLanguage?: string; readonly transcriptionLanguage?: string }): void
  /** Ends the session. The `action` of the document gets `data` as `HandoffData`. */
  end(data?: string): void
}

export interface RelayHandlers {
  setup?(session: RelaySession): void | Promise<void>
  /** The caller said something. Called for final texts only, unless `partial` is true. */
  prompt?(session: RelaySession, prompt: Prompt): void | Promise<void>
  readonly partial?: boolean
  dtmf?(session: RelaySession, digit: string): void | Promise<void>
  interrupt?(session: RelaySession, what: Interruption): void | Promise<void>
  /** The platform could not use a message, or could not hear or speak. The session goes on. */
  error?(session: RelaySession, description: string): void | Promise<void>
  /** A handler threw. Without this the error is thrown where nobody catches it. */
  failed?(error: unknown, session: RelaySession | null): void
  closed?(session: RelaySession | null): void
}

type Message = Readonly<Record<string, unknown>> & { readonly type?: unknown }

/** Serves a session on a WebSocket that was just accepted. Messages are handled in their order. */
export function relay(socket: RelaySocket, handlers: RelayHandlers): void {
  let session: Session | null = null
  const failed = (error: unknown): void => {
    if (handlers.failed) handlers.failed(error, session)
    else queueMicrotask(() => Promise.reject(error))
  }
  socket.addEventListener('message', ({ data }) => {
    const message = read(data)
    if (message === null) return
    if (message.type === 'setup') session = new Session(socket, message as unknown as RelaySetup)
    // Not awaited: an answer that is still written must not hold back the interruption that ends it.
    if (session) handle(session, message, handlers).catch(failed)
  })
  socket.addEventListener('close', () => {
    session?.abort()
    handlers.closed?.(session)
  })
}

function read(data: unknown): Message | null {
  try {
    const message: unknown = JSON.parse(String(data))
    return typeof message === 'object' && message !== null ? (message as Message) : null
  } catch {
    return null
  }
}

async function handle(session: Session, message: Message, handlers: RelayHandlers): Promise<void> {
  switch (message.type) {
    case 'setup':
      await handlers.setup?.(session)
      break
    case 'prompt': {
      const prompt = message as unknown as Prompt
      if (prompt.last) session.next()
      if (prompt.last || handlers.partial) await handlers.prompt?.(session, prompt)
      break
    }
    case 'dtmf':
      await handlers.dtmf?.(session, String(message['digit']))
      break
    case 'interrupt':
      session.abort()
      await handlers.interrupt?.(session, message as unknown as Interruption)
      break
    case 'error':
      await handlers.error?.(session, String(message['description']))
  }
}

class Session implements RelaySession {
  readonly setup: RelaySetup
  readonly #socket: RelaySocket
  #turn = new AbortController()

  constructor(socket: RelaySocket, setup: RelaySetup) {
    this.#socket = socket
    this.setup = setup
  }

  get signal(): AbortSignal {
    return this.#turn.signal
  }

  /** Ends the turn that may still be written, and begins the next one. */
  next(): void {
    this.#turn.abort()
    this.#turn = new AbortController()
  }

  abort(): void {
    this.#turn.abort()
  }

  say(text: string, manner: Manner = {}): void {
    this.#send({ type: 'text', token: text, last: true, ...manner })
  }

  async stream(tokens: AsyncIterable<string> | Iterable<string>, manner: Manner = {}): Promise<void> {
    const { signal } = this
    for await (const token of tokens) {
      if (signal.aborted) break
      this.#send({ type: 'text', token, last: false, ...manner })
    }
    // The platform drops an interrupted turn until its end, or until the next prompt.
    if (!signal.aborted) this.#send({ type: 'text', token: '', last: true, ...manner })
  }

  play(source: string, { loop = 1, ...manner }: Manner & { readonly loop?: number } = {}): void {
    this.#send({ type: 'play', source, loop, ...manner })
  }

  sendDigits(digits: string): void {
    this.#send({ type: 'sendDigits', digits })
  }

  language(languages: { readonly ttsLanguage?: string; readonly transcriptionLanguage?: string }): void {
    this.#send({ type: 'language', ...languages })
  }

  end(data?: string): void {
    this.#turn.abort()
    this.#send({ type: 'end', ...(data === undefined ? {} : { handoffData: data }) })
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify(message))
  }
}
