import type { DocumentTarget, Entry } from '../../markup/interpreter/types.ts'
import type { PlaySource } from '../../media/protocol/schema.ts'
import type { Leg } from '../b2bua/leg.ts'
import type { ScriptedCall } from '../b2bua/scripted-call.ts'
import type { WaitDocument } from './wait-document.ts'

/** The script of a leg in a conference or a queue of this node: one of this node, or a guest of another machine's. */
export interface SharedScript {
  readonly host: {
    readonly call: ScriptedCall
    readonly leg: Pick<Leg, 'id' | 'ended' | 'session'>
  }
  /** Plays what the leg hears while it is not in the mix. */
  readonly waiting: {
    /** Loops the sources until `stop`. */
    hear(sources: PlaySource[]): void
    run(wait: WaitDocument): void
    stop(): void
  }
  /** Replaces the instructions of a live call, and its fallback if one is given. False when the script is over. */
  update(entry: Entry, fallback?: DocumentTarget): boolean
}

/** Sends a leg to the machine that keeps its conference or queue. */
export type Away = (machine_id: string) => void
