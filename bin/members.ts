import { Command } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { print } from './operator-print.ts'
import { ask, askAll } from './operator-route.ts'

interface Json {
  readonly json?: boolean
}

/** Finds the id of a member by the e-mail address. */
async function memberId(email: string): Promise<string> {
  const [found] = await askAll('get /members', { query: { email } })
  if (!found) throw new StartRefused(`there is no member ${email}`)
  return found.id
}

/** Lists people, locks them out, and helps those who lost a password or a second factor. */
export function membersCommand(): Command {
  const command = new Command('members')
  command
    .command('list')
    .description('members of all organizations, by their addresses')
    .option('--organization <id>', 'of one organization')
    .option('--json', 'as JSON')
    .action(async (options: Json & { organization?: string }) => {
      const query = options.organization === undefined ? {} : { organization_id: options.organization }
      print(await askAll('get /members', { query }), options)
    })
  for (const [name, description] of [
    ['lock', 'end every session of a member and take no sign-in'],
    ['unlock', 'let a locked member sign in again'],
    ['appoint-operator', 'let a member operate the installation in the console'],
    ['dismiss-operator', 'end that a member operates the installation'],
    ['reset-second-factor', 'take the second factor of a member who lost it away'],
  ] as const)
    command
      .command(name)
      .description(description)
      .argument('<email>')
      .requiredOption('--reason <text>', 'which the customer reads in the audit trail')
      .option('--json', 'as JSON')
      .action(async (email: string, options: Json & { reason: string }) => {
        const wish = { params: { member_id: await memberId(email) }, body: { reason: options.reason } }
        print(await ask(`post /members/{member_id}/${name}`, wish), options)
      })
  command
    .command('reset-password')
    .description('create a link with which a member sets a new password; it is shown once')
    .argument('<email>')
    .requiredOption('--reason <text>', 'which the customer reads in the audit trail')
    .option('--json', 'as JSON')
    .action(async (email: string, options: Json & { reason: string }) => {
      const body = { member_id: await memberId(email), reason: options.reason }
      print(await ask('post /password-resets', { body }), options)
    })
  return command
}
