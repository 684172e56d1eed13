import { resolve } from 'node:path'
import { Command } from 'commander'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { databaseGiven } from './given-database.ts'
import { presentConfig, theseSettings } from './installation.ts'
import { refuseElsewhere } from './pid-file.ts'
import { orSayWhy } from './say.ts'
import { withState } from './state.ts'
import { fail, give, tell } from './terminal.ts'
import { check, isGood, rehearse, tellFindings, withProgram } from './upgrade/rehearsal.ts'
import { back, begunUpgrade, prepared, resume, runUpgrade } from './upgrade/steps.ts'

interface Options {
  readonly check?: true
  readonly rehearse?: true
  readonly back?: true
  readonly continue?: true
  readonly link?: string
  readonly service?: string
  readonly accept?: true
  readonly copy?: string
  readonly json?: true
}

/** Rehearses a release, and puts it in the place of the version that runs, with a way back. */
export const upgradeCommand = (): Command =>
  new Command('upgrade')
    .argument('[release]', 'a release: its .tar.gz, its .deb, or a folder with bin/strowger')
    .option('--check', 'rehearse the release on a copy of the data, and change nothing that runs')
    .option('--link <path>', 'the link to the folder of the version that runs, such as /opt/strowger')
    .option('--service <unit>', 'the unit of systemd that runs it; else the platform is a process of its own')
    .option(
      '--copy <url>',
      'with PostgreSQL: an empty database for the copy on which the release is rehearsed; @FILE has a URL with password',
    )
    .option('--accept', 'go on although the new version decides otherwise about calls of the last day')
    .option('--back', 'go back from an upgrade that was interrupted')
    .option('--continue', 'go on with an upgrade that was interrupted')
    .option('--rehearse', 'migrate and examine this data folder: what the others have the new version do')
    .option('--json', 'as JSON')
    .action((release: string | undefined, options: Options) =>
      orSayWhy(async () => {
        if (options.rehearse)
          return withState(async state => give(`${JSON.stringify(await rehearse(state))}\n`), { migrates: true })
        if (!options.check) await refuseElsewhere(theseSettings().run_dir)
        if (options.back) return goBack()
        if (options.continue) return goOn()
        if (release === undefined || !(options.check || options.link))
          throw new StartRefused('say what to do: upgrade --check RELEASE, or upgrade RELEASE --link PATH')
        const found = await rehearsed(resolve(release), options)
        if (options.check) return isGood(found) ? undefined : fail()
        if (found.broken.length > 0 || (!isGood(found) && !options.accept))
          throw new StartRefused('nothing was changed; --accept goes on although calls are decided otherwise')
        await upgrade(resolve(release), options, found.migrations)
      }),
    )

function rehearsed(release: string, { json, copy }: Options) {
  const copy_url = copy === undefined ? null : databaseGiven(copy)
  return withState((state, config) =>
    withProgram(release, config.run_dir, async program => {
      const found = await check(state, config, program, copy_url)
      if (json) give(`${JSON.stringify(found)}\n`)
      else tellFindings(found)
      return found
    }),
  )
}

async function upgrade(release: string, options: Options, migrations: readonly string[]): Promise<void> {
  const config = presentConfig()
  refuseSecond(config.data_dir)
  const { link = '', service = null } = options
  const journal = await prepared(release, config, { link, service, migrations })
  await runUpgrade(journal, config)
  tellDone(journal)
}

function refuseSecond(data_dir: string): void {
  const begun = begunUpgrade(data_dir)
  if (begun)
    throw new StartRefused(
      `an upgrade to ${begun.to} stopped in its step "${begun.step}": strowger upgrade --back, or --continue`,
    )
}

/** The upgrade that was interrupted. The data may be that of the new version, so the state is not opened. */
function interrupted() {
  const config = theseSettings()
  const begun = begunUpgrade(config.data_dir)
  if (begun === null) throw new StartRefused('no upgrade was interrupted')
  return { config, begun }
}

async function goBack(): Promise<void> {
  const { config, begun } = interrupted()
  await back(begun, config)
  tell(`${begun.from} runs\n`)
}

async function goOn(): Promise<void> {
  const { config, begun } = interrupted()
  await resume(begun, config)
  tellDone(begun)
}

const tellDone = ({
  to,
  backup,
  copy,
}: {
  readonly to: string
  readonly backup: string
  readonly copy: string | null
}): void =>
  tell(
    copy === null
      ? `${to} runs; the backup from before is ${backup}. When all machines run it: strowger migrate --contract\n`
      : `${to} runs; the backup from before is ${backup}, the database when the last call had ended ${copy}\n`,
  )
