import { writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { pcapng } from '../core/domain/ladder/pcapng.ts'
import { renderLadder } from '../core/domain/ladder/render.ts'
import { ladderUnavailable } from '../core/domain/ladder/unavailable.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { ladderOf } from '../core/state/calls/ladder.ts'
import { openState } from '../core/state/index.ts'
import { presentConfig } from './installation.ts'
import { orSayWhy } from './say.ts'
import { wholeCallSid } from './short-ids.ts'

export const ladderCommand = (): Command =>
  new Command('ladder')
    .argument('<sid>', 'CallSid (CA…), or its first characters')
    .option('--full', 'the messages themselves, too')
    .option('--json', 'as JSON')
    .option('--pcap <file>', 'write them as a capture for Wireshark, tshark or sngrep')
    .action((typed: string, options: { full?: boolean; json?: boolean; pcap?: string }) =>
      orSayWhy(async () => {
        const config = presentConfig()
        const state = await openState({ ...config, here: true })
        try {
          const sid = await wholeCallSid(state.db, typed)
          const messages = await ladderOf(state.db, sid, 'operator')
          if (messages === null) throw new StartRefused(`there is no call ${sid}`)
          const unavailable = ladderUnavailable(config.drachtio !== null, messages)
          if (unavailable !== null) throw new StartRefused(unavailable)
          if (options.pcap !== undefined) {
            const own = config.second ? [config.host, config.second.host] : [config.host]
            writeFileSync(options.pcap, pcapng(messages, own, `Call ${sid}. Secrets are masked.`), { mode: 0o600 })
            return
          }
          if (options.json) process.stdout.write(`${JSON.stringify(messages)}\n`)
          else process.stdout.write(renderLadder(messages))
          if (options.full) for (const message of messages) process.stdout.write(`\n${message.text.trimEnd()}\n`)
        } finally {
          await state.close()
        }
      }),
    )
