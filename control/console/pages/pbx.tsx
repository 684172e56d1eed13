import { useState } from 'preact/hooks'
import type { PlatformEndpoints } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { asterisk, firewall, freeswitch, kamailio, pbxFacts, threeCx } from '../lib/pbx.ts'
import type { Trunk } from '../lib/types.ts'
import { Card, CodeBox, Loaded } from '../ui/basics.tsx'

const KINDS = ['Asterisk', 'FreeSWITCH', '3CX', 'Kamailio', 'Firewall'] as const
type Kind = (typeof KINDS)[number]

/** Configurations of common PBXs, filled in with the addresses and the trunk's own settings. */
export function PbxConfigurations({ trunk, password }: { trunk: Trunk | null; password: string | null }) {
  const platform = useData<PlatformEndpoints>('/v1/platform/endpoints')
  const [kind, setKind] = useState<Kind>('Asterisk')
  return (
    <Card
      title="Configuration of your PBX"
      hint={
        password === null
          ? 'Ready to paste; put the password in its place.'
          : 'Ready to paste. It holds the password: keep it safe.'
      }
      actions={
        <fieldset class="row" aria-label="Kind of PBX">
          {KINDS.map(name => (
            <button
              type="button"
              key={name}
              class={`button small ${name === kind ? 'main-one' : ''}`}
              aria-pressed={name === kind}
              onClick={() => setKind(name)}
            >
              {name}
            </button>
          ))}
        </fieldset>
      }
    >
      <Loaded of={platform}>
        {endpoints => <CodeBox text={textOf(kind, endpoints, trunk, password)} what={`the ${kind} configuration`} />}
      </Loaded>
    </Card>
  )
}

function textOf(kind: Kind, endpoints: PlatformEndpoints, trunk: Trunk | null, password: string | null): string {
  const facts = pbxFacts(endpoints, trunk, password)
  if (kind === 'Asterisk') return asterisk(facts)
  if (kind === 'FreeSWITCH') return freeswitch(facts)
  if (kind === '3CX') return threeCx(facts)
  if (kind === 'Kamailio') return kamailio(facts)
  return firewall(endpoints)
}
