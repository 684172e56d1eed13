import { silence, speak, tone } from './audio.ts'
import type { RtpSession } from './rtp.ts'

/** The operations of a behaviour on its call. All of them stop when the caller hangs up or cancels. */
export interface SandboxCall {
  /** The called number, as in the request-URI. */
  readonly called: string
  readonly rtp: RtpSession
  ring(): void
  /** Sends a 183 with SDP and starts early media. */
  earlyMedia(): void
  /** Sends 200; resolves when the ACK has come. */
  answer(): Promise<void>
  refuse(status: number): void
  hangUp(): void
  /** Resolves after `ms`; never, if the call ends before. */
  wait(ms: number): Promise<void>
}

export type Behaviour = (call: SandboxCall) => Promise<void>

/** The tone that numbers without a special behaviour play. Tests measure it. */
const TONE_HZ = 440
/** CED, the answer tone of a fax machine (ITU-T T.30 §4.1.2). */
const FAX_HZ = 2100

/** A person who hears no prompt presses keys after this time. `<Gather>` waits 5 s by default. */
const UNPROMPTED_MS = 4000

/** Behaviours by the last four digits of the called number (design section 9). */
const BY_ENDING: Readonly<Record<string, Behaviour>> = {
  '0001': async call => {
    await call.answer()
    await call.rtp.play(await speak(`You have called ${[...call.called].join(' ')}. I repeat what you say.`))
    call.rtp.echo()
  },
  '0002': async call => call.refuse(486),
  '0003': async call => call.ring(),
  '0004': async call => {
    await call.answer()
    // Wait for the prompt, as a person would: keys sent before the document collects any are lost.
    await Promise.race([call.rtp.spokenTo(), call.wait(UNPROMPTED_MS)])
    await call.wait(500)
    call.rtp.sendDigits('1234#')
  },
  '0005': async call => call.refuse(404),
  '0006': async call => {
    call.ring()
    await call.wait(3000)
    await call.answer()
    await call.wait(5000)
    call.hangUp()
  },
  '0007': async call => {
    call.earlyMedia()
    await call.rtp.play(await speak('The number you have dialled cannot be reached.'))
    call.refuse(503)
  },
  '0008': async call => call.answer(),
  '0009': async call => {
    await call.answer()
    await call.rtp.play(silence(200))
    await call.rtp.play(tone(FAX_HZ, 3000))
  },
}

const playTone: Behaviour = async call => {
  call.ring()
  await call.answer()
  // The tone has a whole number of periods, so the loop does not click.
  await call.rtp.play(tone(TONE_HZ, 1000), { loop: true })
}

export const behaviourOf = (called: string): Behaviour => BY_ENDING[called.slice(-4)] ?? playTone
