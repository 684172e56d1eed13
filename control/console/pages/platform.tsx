import { useState } from 'preact/hooks'
import type { PlatformEndpoints } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import type { ListOf, Trunk, TrunkSummary } from '../lib/types.ts'
import { Card, CodeBox, Facts, Id, Loaded, PageHead, Time } from '../ui/basics.tsx'
import { SelectField } from '../ui/form.tsx'
import { PbxConfigurations } from './pbx.tsx'

export function Platform() {
  const platform = useData<PlatformEndpoints>('/v1/platform/endpoints')
  const trunks = useData<ListOf<TrunkSummary>>('/v1/trunks')
  const [chosen, setChosen] = useState('')
  const trunk = useData<Trunk>(chosen === '' ? null : `/v1/trunks/${chosen}`)
  return (
    <>
      <PageHead title="Connect a PBX" sub="Where the platform is reached, and configurations to paste into your PBX." />
      <Loaded of={platform}>
        {endpoints => (
          <div class="columns">
            <Card
              title="Signalling"
              hint={
                <>
                  Read <Time at={endpoints.as_of} />
                </>
              }
            >
              <Facts
                rows={[
                  [
                    'Addresses',
                    endpoints.signaling_nodes.map(node => <Id key={node} value={node} what="the address" />),
                  ],
                  ['Name', <Id key="n" value={endpoints.signaling_fqdn} what="the name" />],
                  ...endpoints.transports.map(
                    ({ transport, port }) => [transport.toUpperCase(), `port ${port}`] as const,
                  ),
                  ['Realm', endpoints.tls.realm],
                ]}
              />
            </Card>
            <Card title="Media">
              <Facts
                rows={[
                  ['Addresses', endpoints.media_anchors.join(', ')],
                  ['Networks', endpoints.media_cidrs.join(', ')],
                  ['RTP ports', `UDP ${endpoints.rtp_port_range}`],
                ]}
              />
            </Card>
            {endpoints.tls.trust_chain.length > 0 && (
              <Card
                title="Certificate for TLS"
                hint="Install this chain when the PBX verifies the certificate of the platform."
              >
                <CodeBox text={endpoints.tls.trust_chain.join('\n')} what="the certificate chain" />
              </Card>
            )}
          </div>
        )}
      </Loaded>
      <SelectField
        label="Fill in the settings of a trunk"
        value={chosen}
        onInput={setChosen}
        options={[
          { value: '', text: 'No trunk: placeholders' },
          ...(trunks.data?.data ?? []).map(({ id, name }) => ({ value: id, text: name })),
        ]}
      />
      <PbxConfigurations trunk={trunk.data ?? null} password={null} />
    </>
  )
}
