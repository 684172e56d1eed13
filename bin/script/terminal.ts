import { startRun, step } from '../../markup/interpreter/step.ts'
import type { Command, Event, Fetch, Fetched, Run, StartFacts, StepResult } from '../../markup/interpreter/types.ts'
import { eventLine, startLine } from '../../markup/replay/replay.ts'
import { printed } from './printed.ts'
import { answersTo, type Habits } from './simulated.ts'

interface TerminalOptions {
  readonly facts: StartFacts
  readonly habits: Habits
  readonly print: (line: string) => void
  /** Fetches a document; the first one may be a file. */
  readonly fetch: (command: Fetch) => Promise<Fetched['result']>
  /** Called with each line of the run's log. */
  readonly log?: (line: string) => void
}

/**
 * Runs a script without a telephone. Speech is printed; keys and spoken words are typed; `answersTo` simulates children
 * and recordings. Timers run in real time until the input ends, and then fire at once.
 */
export class ScriptTerminal {
  readonly #options: TerminalOptions
  #run: Run
  readonly #timers = new Map<string, NodeJS.Timeout | null>()
  readonly #events: Event[] = []
  #pending = 0
  #listening: { keys: boolean; speech: string | null } = { keys: false, speech: null }
  #typed = ''
  #printed = ''
  #inputEnded = false
  #finish: (() => void) | null = null
  #scheduled = false
  readonly over: Promise<void>

  constructor(options: TerminalOptions) {
    this.#options = options
    this.over = new Promise(resolve => {
      this.#finish = resolve
    })
    const first = startRun(options.facts)
    this.#run = first.run
    options.log?.(startLine(options.facts, first))
    this.#take(first)
  }

  /** Handles a typed line: `h` hangs up, words are speech while the script listens for it, and the rest is keys. */
  type(line: string): void {
    const words = line.trim()
    if (words === 'h') this.#events.push({ type: 'hangup' })
    else if (this.#listening.speech !== null && !/^[0-9*#A-D]+$/.test(words)) this.#speak(words)
    else this.#typed += words.replace(/[^0-9*#A-D]/g, '')
    this.#schedule()
  }

  /** Ends the input. From now on timers fire at once. */
  end(): void {
    this.#inputEnded = true
    for (const timer of this.#timers.values()) if (timer) clearTimeout(timer)
    this.#schedule()
  }

  #speak(text: string): void {
    const id = this.#listening.speech
    if (id === null) return
    this.#events.push(
      { type: 'speech_started', id },
      { type: 'speech_result', id, text, confidence: 1, language: null },
    )
  }

  #take({ run, commands }: StepResult): void {
    this.#run = run
    for (const command of commands) this.#carryOut(command)
    if (run.phase.name !== 'done') {
      this.#schedule()
      return
    }
    for (const timer of this.#timers.values()) if (timer) clearTimeout(timer)
    this.#timers.clear()
    this.#finish?.()
  }

  #carryOut(command: Command): void {
    const line = printed(command)
    // Gather restarts its timer with each key; print the line only once.
    if (line !== null && line !== this.#printed) this.#options.print(line)
    if (line !== null) this.#printed = line
    switch (command.type) {
      case 'fetch':
        this.#pending++
        this.#options.fetch(command).then(
          result => this.#fetched(command.id, result),
          (error: unknown) => this.#fetched(command.id, { ok: false, number: 11200, detail: String(error) }),
        )
        return
      case 'start_timer':
        this.#timers.set(command.id, this.#inputEnded ? null : setTimeout(() => this.#fire(command.id), command.ms))
        return
      case 'cancel_timer':
        clearTimeout(this.#timers.get(command.id) ?? undefined)
        this.#timers.delete(command.id)
        return
      case 'digits_on':
        this.#listening = { ...this.#listening, keys: true }
        return
      case 'digits_off':
        this.#listening = { ...this.#listening, keys: false }
        return
      case 'recognize':
        this.#listening = { ...this.#listening, speech: command.id }
        return
      case 'stop_recognize':
        this.#listening = { ...this.#listening, speech: null }
        return
      case 'start_echo':
        return
      default:
        this.#events.push(...answersTo(command, this.#options.habits))
    }
  }

  #fetched(id: string, result: Fetched['result']): void {
    this.#pending--
    if (!result.ok) this.#options.print(`<- failed with ${result.number}: ${result.detail}`)
    this.#events.push({ type: 'fetched', id, result })
    this.#schedule()
  }

  #fire(id: string): void {
    this.#timers.delete(id)
    this.#events.push({ type: 'timer', id })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#run.phase.name === 'done') return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      const event = this.#next()
      if (!event) return
      const result = step(this.#run, event)
      this.#options.log?.(eventLine(event, result))
      this.#take(result)
    })
  }

  /** Returns the next event: a typed key if the script listens, a queued event or, after the input's end, a timer. */
  #next(): Event | undefined {
    if (this.#listening.keys && this.#typed !== '') {
      const digit = this.#typed[0] ?? ''
      this.#typed = this.#typed.slice(1)
      return { type: 'digit', digit }
    }
    const event = this.#events.shift()
    if (event) return event
    if (!this.#inputEnded || this.#pending > 0) return undefined
    const timer = this.#timers.keys().next()
    // The script waits only for the caller, so the caller hangs up.
    if (timer.done) return { type: 'hangup' }
    this.#timers.delete(timer.value)
    return { type: 'timer', id: timer.value }
  }
}
