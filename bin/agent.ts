import { Command } from 'commander'
import { readText } from './files.ts'
import { theseSettings } from './installation.ts'
import { orSayWhy } from './say.ts'
import { terminalFacts } from './script.ts'

/** The command `strowger agent try FILE`. */
export function agentCommand(): Command {
  const command = new Command('agent')
  command
    .command('try')
    .description(
      'talk to the relay application that a document names, with the engines of this installation. Each line ' +
        'of the input is a WAV file, words or a key, and waits until the agent has finished; ! before it interrupts',
    )
    .argument('<file>', 'document that begins with <Connect><ConversationRelay>')
    .option('--from <number>', 'caller', '+2348030000099')
    .option('--to <number>', 'called number', '+2342010000001')
    .option('--out <file>', 'write what the caller hears to this WAV file')
    .action((file: string, options: { from: string; to: string; out?: string }) =>
      orSayWhy(async () => {
        const config = theseSettings()
        const facts = terminalFacts(null, readText(file), options)
        const [tts, stt] = [config.tts_choices, config.stt_choices].map(all => all.map(({ engine }) => engine))
        const speech = {
          ...facts.speech,
          providers: { tts: config.tts.engine, stt: config.stt?.engine ?? null },
          choices: { tts: tts ?? [], stt: stt ?? [] },
        }
        const { tryAgent } = await import('./agent/try.ts')
        await tryAgent(readText(file), { ...facts, speech }, config, options)
      }),
    )
  return command
}
