import { Command } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { explainCall } from '../core/state/money/reservations.ts'
import { withState } from './state.ts'

/** Prints the price of a call line by line, so that a person can recompute it. */
export function rateCommand(): Command {
  return new Command('rate').argument('<call_sid>').action((call_sid: string) =>
    withState(async state => {
      const lines = await explainCall(state.db, call_sid)
      if (!lines) throw new StartRefused(`the call ${call_sid} has no price: it is unknown, inbound, or still running`)
      process.stdout.write(`${lines.join('\n')}\n`)
    }),
  )
}
