import { Command } from 'commander'
import { oneLine } from '../core/domain/text/visible.ts'
import { checkEvidence, type EvidenceVerdict } from '../core/runtime/evidence.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { readText } from './files.ts'
import { orSayWhy } from './say.ts'
import { give, tell } from './terminal.ts'

interface VerifyOptions {
  readonly key?: string
  readonly json?: boolean
}

export const verifyCommand = (): Command =>
  new Command('verify')
    .argument('<file>', 'evidence of a call, from /v1/calls/{call_id}/evidence; `-` is standard input')
    .option('--key <file>', 'the public key of the installation, from /evidence-key.pem')
    .option('--json', 'as JSON')
    .action((file: string, options: VerifyOptions) => orSayWhy(async () => verify(file, options)))

function verify(file: string, { key, json }: VerifyOptions): void {
  const text = readText(file)
  const expected = key === undefined ? undefined : readText(key)
  let verdict: EvidenceVerdict
  try {
    verdict = checkEvidence(text, expected)
  } catch (error) {
    throw new StartRefused(`${file} cannot be checked: ${error instanceof Error ? error.message : error}`)
  }
  const { about, fingerprint, findings, intact } = verdict
  if (json) give(`${JSON.stringify(verdict)}\n`)
  else {
    const by = key === undefined ? `the key ${fingerprint}; compare it, or name it with --key` : 'the expected key'
    tell(`call ${oneLine(about.call_id)}, evidence of ${oneLine(about.made_at)} by ${oneLine(about.made_by)}\n`)
    for (const finding of findings) tell(`! ${oneLine(finding)}\n`)
    if (intact) tell(`intact, signed by ${by}\n`)
  }
  if (!intact) throw new StartRefused('the evidence was modified')
}
