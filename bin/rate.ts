import { Command } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { costOfCall } from '../core/state/money/reservations.ts'
import { wholeCallSid } from './short-ids.ts'
import { withState } from './state.ts'
import { give, tell } from './terminal.ts'

/** Prints the price of a call line by line, so that a person can recompute it. */
export function rateCommand(): Command {
  return new Command('rate')
    .argument('<call_sid>', 'CallSid (CA…), or its first characters')
    .option('--json', 'as JSON')
    .action((typed: string, { json }: { readonly json?: true }) =>
      withState(async state => {
        const call_sid = await wholeCallSid(state.db, typed)
        const cost = await costOfCall(state.db, call_sid)
        if (!cost)
          throw new StartRefused(`the call ${call_sid} has no price: it is unknown, still running, or costs nothing`)
        if (json) give(`${JSON.stringify(cost)}\n`)
        else tell(`${cost.explanation.join('\n')}\n`)
      }),
    )
}
