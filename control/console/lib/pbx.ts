import type { PlatformEndpoints } from './api-types.ts'
import { ASTERISK_CODECS } from './trunk-choices.ts'
import type { Codec, Trunk } from './types.ts'

/** The values that fill a PBX's configuration. */
interface PbxFacts {
  readonly host: string
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly tls_port: number
  /** Null when the trunk identifies the PBX by its address. */
  readonly username: string | null
  readonly password: string
  readonly realm: string
  readonly codecs: readonly Codec[]
  readonly srtp: boolean
}

export function pbxFacts(platform: PlatformEndpoints, trunk: Trunk | null, password: string | null): PbxFacts {
  const tls = trunk?.authentication.require_tls ?? false
  const transport = tls ? 'tls' : 'udp'
  const portOf = (name: string): number =>
    platform.transports.find(entry => entry.transport === name)?.port ?? platform.signaling_port
  const identity = trunk?.authentication.digest_identities.find(entry => entry.enabled)
  return {
    host: platform.signaling_nodes[0] ?? platform.signaling_fqdn,
    port: portOf(transport),
    transport,
    tls_port: portOf('tls'),
    username: trunk && trunk.authentication.mode === 'ip_allow_list' ? null : (identity?.username ?? 'YOUR-USER'),
    password: password ?? 'YOUR-PASSWORD',
    realm: identity?.realm ?? platform.tls.realm,
    codecs: trunk?.media.codecs ?? ['PCMA', 'PCMU'],
    srtp: trunk?.media.security === 'sdes_srtp_required',
  }
}

/** Returns the host as URIs write it, with brackets around an IPv6 address. */
const inUri = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const KNOWN_BY_ADDRESS = 'known by its address: no user, no password'

/** A registered PBX is called at its Contact (RFC 3261 §10), so the called number is in To alone. */
const numberInTo = (user: string): string => `
exten => ${user},1,Set(TO=\${PJSIP_HEADER(read,To)})
 same => n,Set(TO=\${CUT(TO,@,1)})
 same => n,Goto(\${CUT(TO,:,2)},1)`

export function asterisk(facts: PbxFacts): string {
  const { host, port, transport, username, password } = facts
  const server = `sip:${inUri(host)}:${port}${transport === 'udp' ? '' : `\\;transport=${transport}`}`
  const auth =
    username === null
      ? ''
      : `
[strowger-auth]
type=auth
auth_type=userpass
username=${username}
password=${password}
realm=${facts.realm}

[strowger-registration]
type=registration
transport=transport-strowger
outbound_auth=strowger-auth
server_uri=${server}
client_uri=sip:${username}@${inUri(host)}:${port}
contact_user=${username}
retry_interval=30
expiration=300
line=yes
endpoint=strowger
`
  return `; /etc/asterisk/pjsip.conf${username === null ? ` (${KNOWN_BY_ADDRESS})` : ''}
[transport-strowger]
type=transport
protocol=${transport}
bind=0.0.0.0
${auth}
[strowger-aor]
type=aor
contact=${server}
qualify_frequency=30

[strowger]
type=endpoint
transport=transport-strowger
context=from-strowger
disallow=all
allow=${facts.codecs.map(codec => ASTERISK_CODECS[codec]).join(',')}
aors=strowger-aor${username === null ? '' : `\noutbound_auth=strowger-auth\nfrom_user=${username}`}
media_encryption=${facts.srtp ? 'sdes' : 'no'}
dtmf_mode=rfc4733
direct_media=no
rtp_symmetric=yes
send_pai=yes

[strowger-identify]
type=identify
endpoint=strowger
match=${host}

; /etc/asterisk/extensions.conf
[from-strowger]
exten => _+X.,1,Dial(PJSIP/100)${username === null ? '' : numberInTo(username)}
[to-strowger]
exten => _+X.,1,Set(CALLERID(num)=+YOURNUMBER)
 same => n,Dial(PJSIP/\${EXTEN}@strowger,60)
`
}

export function freeswitch(facts: PbxFacts): string {
  const { host, port, transport, username, password } = facts
  return `<!-- /etc/freeswitch/sip_profiles/external/strowger.xml${username === null ? ` (${KNOWN_BY_ADDRESS})` : ''} -->
<include>
  <gateway name="strowger">
    <param name="proxy" value="${inUri(host)}:${port}"/>
    <param name="realm" value="${facts.realm}"/>
    <param name="username" value="${username ?? 'strowger'}"/>
    <param name="password" value="${username === null ? 'none' : password}"/>
    <param name="register" value="${username === null ? 'false' : 'true'}"/>
    <param name="register-transport" value="${transport}"/>
    <param name="expire-seconds" value="300"/>
    <param name="ping" value="30"/>
    <param name="extension" value="auto_to_user"/>
    <param name="caller-id-in-from" value="true"/>
  </gateway>
</include>

<!-- /etc/freeswitch/dialplan/default/strowger.xml -->
<include>
  <extension name="strowger">
    <condition field="destination_number" expression="^(\\+\\d{7,15})$">
      <action application="set" data="effective_caller_id_number=+YOURNUMBER"/>
      <action application="set" data="absolute_codec_string=${facts.codecs.join(',')}"/>${facts.srtp ? '\n      <action application="export" data="rtp_secure_media=mandatory"/>' : ''}
      <action application="bridge" data="sofia/gateway/strowger/$1"/>
    </condition>
  </extension>
</include>
`
}

export function threeCx(facts: PbxFacts): string {
  const { host, port, transport, username, password } = facts
  const rows: readonly (readonly [string, string])[] = [
    ['Trunk template', 'Generic SIP Trunk'],
    ['Registrar / server', host],
    ['Port', String(port)],
    ['Transport', transport.toUpperCase()],
    ['Type of authentication', username === null ? 'Do not require – IP based' : 'Register / account based'],
    ...(username === null
      ? []
      : ([
          ['Authentication ID (SIP user)', username],
          ['Authentication password', password],
          ['Re-register time-out', '300'],
        ] as const)),
    ['SRTP', facts.srtp ? 'Enabled, required' : 'Disabled'],
    ['Codec priority', facts.codecs.join(', ')],
    ['Main trunk number', '+YOURNUMBER'],
    ['Outbound caller ID', 'E.164 with +'],
    ['DID numbers', 'each number with + and country code'],
    ['PBX delivers audio', 'on'],
    ['Supports re-INVITE / Replaces', 'on'],
  ]
  const width = Math.max(...rows.map(([name]) => name.length)) + 2
  return `3CX: Admin > Voice & chat > Add trunk\n\n${rows.map(([name, value]) => `${name.padEnd(width)}${value}`).join('\n')}\n`
}

export function kamailio(facts: PbxFacts): string {
  const { host, port, transport, username, password } = facts
  const uri = `sip:${inUri(host)}:${port};transport=${transport}`
  const uac =
    username === null
      ? ''
      : `
# Digest towards the platform
loadmodule "uac.so"
modparam("uac", "auth_realm_avp", "$avp(arealm)")
modparam("uac", "auth_username_avp", "$avp(auser)")
modparam("uac", "auth_password_avp", "$avp(apass)")
failure_route[STROWGER] {
    if (t_is_canceled()) exit;
    if (t_check_status("401|407")) {
        $avp(arealm) = "${facts.realm}";
        $avp(auser)  = "${username}";
        $avp(apass)  = "${password}";
        if (uac_auth()) { t_relay(); exit; }
    }
    # The next gateway only when this one failed
    if (t_check_status("408|430|5[0-9][0-9]") && ds_next_dst()) { t_relay(); exit; }
}
`
  return `# /etc/kamailio/dispatcher.list
1 ${uri} 0 10

# kamailio.cfg${username === null ? ` (${KNOWN_BY_ADDRESS})` : ''}
loadmodule "dispatcher.so"
modparam("dispatcher", "list_file", "/etc/kamailio/dispatcher.list")
modparam("dispatcher", "ds_ping_interval", 30)
modparam("dispatcher", "ds_probing_mode", 1)
${uac}
route[TO_STROWGER] {
    # $rU is E.164 with +
    if (!ds_select_dst("1", "4")) { send_reply("503", "No gateway"); exit; }
    t_on_failure("STROWGER");
    t_relay();
}
route[FROM_STROWGER] {
    if (ds_is_from_list("1")) { route(TO_PBX); exit; }
}${username === null ? '\nfailure_route[STROWGER] {\n    if (t_check_status("408|430|5[0-9][0-9]") && ds_next_dst()) { t_relay(); exit; }\n}' : ''}
`
}

export function firewall(platform: PlatformEndpoints): string {
  const from = [...new Set([...platform.signaling_nodes, ...platform.media_cidrs])]
  const rules = platform.transports.map(
    ({ transport, port }) =>
      `# SIP over ${transport.toUpperCase()}: to ${platform.signaling_nodes.join(', ')} port ${port}`,
  )
  return [
    '# Let the platform in (nftables)',
    ...from.map(
      address =>
        `nft add rule inet filter input ${address.includes(':') ? 'ip6' : 'ip'} saddr ${address} udp dport { 5060, 10000-20000 } accept`,
    ),
    '',
    '# What the PBX reaches',
    ...rules,
    `# RTP: to ${platform.media_anchors.join(', ')} UDP ports ${platform.rtp_port_range}`,
    '',
  ].join('\n')
}
