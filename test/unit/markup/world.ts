import { answersTo, type Habits } from '../../../bin/script/simulated.ts'
import type { Command, Event } from '../../../markup/interpreter/types.ts'

export { answersTo, type Habits }

/**
 * Continues a run with the usual events until it is done, waits for a document, or has no event left. Timers fire only
 * when there is no other event.
 */
export function carryOn(
  first: readonly Command[],
  send: (event: Event) => readonly Command[],
  habits: Habits = {},
  limit = 1000,
): void {
  const events: Event[] = []
  const timers: string[] = []
  const take = (commands: readonly Command[]) => {
    for (const command of commands) {
      if (command.type === 'start_timer') timers.push(command.id)
      else if (command.type === 'cancel_timer') remove(timers, command.id)
      else events.push(...answersTo(command, habits))
    }
  }
  take(first)
  for (let i = 0; i < limit; i++) {
    const timer = events.length === 0 ? timers.shift() : undefined
    const event = events.shift() ?? (timer === undefined ? undefined : ({ type: 'timer', id: timer } as const))
    if (!event) return
    const commands = send(event)
    if (commands.some(({ type }) => type === 'done' || type === 'fetch')) return
    take(commands)
  }
}

function remove(list: string[], value: string): void {
  const index = list.indexOf(value)
  if (index >= 0) list.splice(index, 1)
}
