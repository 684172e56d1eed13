import type { Move, Turn } from '../interpreter/turn.ts'
import type { Event, PlayEnded, PlayItem } from '../interpreter/types.ts'
import { next, stay } from './verb.ts'

interface PlayingState {
  readonly play: string
}

/** Plays the items and waits for the end: all of Say, and of Play after its digits. */
export function playItems(turn: Turn, items: readonly PlayItem[]): Move {
  const id = turn.id('play')
  turn.emit({ type: 'play', id, items })
  return stay({ play: id } satisfies PlayingState)
}

playItems.steps = {
  on(_node: unknown, turn: Turn, state: PlayingState, event: Event): Move | undefined {
    if (event.type !== 'play_ended' || event.id !== state.play) return undefined
    noteFailures(turn, event)
    return next
  },
  cut(_node: unknown, turn: Turn, state: PlayingState): void {
    turn.emit({ type: 'stop_play', id: state.play })
  },
}

/** Notes audio that could not be played. Such a fault never changes the flow of the call (voice-compat.md §7.5). */
export function noteFailures(turn: Turn, event: PlayEnded, renumber: (number: number) => number = same): void {
  for (const { number, detail } of event.failures) turn.warn(renumber(number), detail)
}

function same(number: number): number {
  return number
}
