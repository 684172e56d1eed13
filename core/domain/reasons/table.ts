/** The party at fault for a refused or failed call. */
type Blame = 'caller' | 'limit' | 'peer' | 'ours' | 'unknown'

export interface ReasonEntry {
  /** SIP code of a refusal; null when no INVITE is refused with it. */
  readonly sip: number | null
  /** HTTP status of the problem document on /v1; null when no request is refused with it. */
  readonly http: number | null
  /** Error number of the voice-calls API (voice-compat.md section 15); null without one. */
  readonly voice: number | null
  /** HTTP status of that numbered error. */
  readonly voice_http: number | null
  /**
   * Error number of the compatible form for a refused SIP call, so that people can search for it (voice-compat.md
   * section 15).
   */
  readonly sip_number: number | null
  readonly blame: Blame
  /** Seconds for a Retry-After header. */
  readonly retry_after_seconds: number | null
  /**
   * The sentence for people. `{name}` is replaced by the fact of that name, so that the offending value is in it;
   * `{value:call is|calls are}` by a number with what is said of one and of several.
   */
  readonly sentence: string
  /** The remedy. */
  readonly mend: string
  /** Its numbers are amounts in minor units. */
  readonly of_money: boolean
}

const DEFAULTS = {
  sip: null,
  http: null,
  voice: null,
  voice_http: null,
  sip_number: null,
  retry_after_seconds: null,
  of_money: false,
} as const

type Given = Partial<ReasonEntry> & Pick<ReasonEntry, 'blame' | 'sentence' | 'mend'>

const entry = (given: Given): ReasonEntry => Object.freeze({ ...DEFAULTS, ...given })

const caller = (given: Omit<Given, 'blame'>): ReasonEntry => entry({ blame: 'caller', ...given })
const limit = (given: Omit<Given, 'blame'>): ReasonEntry => entry({ blame: 'limit', ...given })
const ours = (given: Omit<Given, 'blame'>): ReasonEntry => entry({ blame: 'ours', ...given })
const peer = (given: Omit<Given, 'blame'>): ReasonEntry => entry({ blame: 'peer', ...given })
const unknown = (given: Omit<Given, 'blame'>): ReasonEntry => entry({ blame: 'unknown', ...given })

const suspended = (noun: string): ReasonEntry =>
  caller({
    sip: 403,
    http: 409,
    voice: 10001,
    voice_http: 403,
    sentence: `${noun} {name} is {value}, not enabled`,
    mend: `Resume ${noun.toLowerCase()} {name}, or use another one.`,
  })

const spend = (sentence: string, mend: string): ReasonEntry =>
  limit({ sip: 403, http: 403, voice: 20403, voice_http: 403, of_money: true, sentence, mend })

/**
 * Every reason why a call or a request is refused, or why a call ends without a party hanging up. SIP headers, problem
 * documents, voice errors, CDRs, traces, metrics and docs/errors.md derive from this table.
 */
export const REASONS = {
  // Who is calling.
  unauthenticated: caller({
    sip: 401,
    http: 401,
    voice: 20003,
    voice_http: 401,
    sip_number: 32202,
    sentence: 'no valid credential was presented by {value}',
    mend: 'Send a valid credential, or add the source address to the trunk.',
  }),
  source_not_allowed: caller({
    sip: 403,
    sip_number: 32201,
    sentence: 'the source address {value} is in no enabled source of trunk {name}',
    mend: 'Add {value} to the sources of the trunk, or set source_validation to relaxed.',
  }),
  source_ambiguous: caller({
    sip: 403,
    sip_number: 32201,
    sentence: 'the source address {value} belongs to several trunks and the request names none of their hosts',
    mend: "Put the trunk's signaling_fqdn into the request-URI, or give the sources different precedences.",
  }),
  loop_detected: caller({
    sip: 482,
    sentence: 'the call to {value} came back to the platform that sent it',
    mend: 'Find the target or the forwarding rule that sends the call back to the platform.',
  }),
  too_many_hops: caller({
    sip: 483,
    sip_number: 32006,
    sentence: 'Max-Forwards of the call to {value} is used up',
    mend: 'Find the routing loop between the peers of this call.',
  }),

  body_unsupported: caller({
    sip: 415,
    sentence: 'the body has {value}, which this platform cannot read',
    mend: 'Send the body as application/sdp, or mark the part with handling=optional.',
  }),

  // The thirteen checks of admission (design section 4), in their order.
  project_disabled: suspended('Project'),
  subaccount_suspended: suspended('Subaccount'),
  trunk_disabled: suspended('Trunk'),
  subtrunk_disabled: suspended('Subtrunk'),
  direction_not_allowed: caller({
    sip: 403,
    sip_number: 32203,
    sentence: '{name} has direction {limit} and this call is {value}',
    mend: 'Change the direction of the trunk to both, or make a client token that allows such calls.',
  }),
  outbound_disabled: caller({
    sip: 403,
    http: 403,
    voice: 20403,
    voice_http: 403,
    sip_number: 32203,
    sentence: 'outbound calls of {name} are switched off in its attachment to policy {limit}',
    mend: 'Set outbound_enabled where the policy is attached to the service.',
  }),
  tls_required: caller({
    sip: 403,
    sip_number: 32209,
    sentence: 'trunk {name} requires tls and this call came by {value}',
    mend: 'Send the call by TLS, or turn require_tls off.',
  }),
  srtp_required: caller({
    sip: 488,
    sip_number: 32208,
    sentence: 'trunk {name} requires sdes_srtp and the offer has {value}',
    mend: 'Offer RTP/SAVP with a=crypto, or set media_security to rtp.',
  }),
  no_common_codec: caller({
    sip: 488,
    sip_number: 32102,
    sentence: 'the offer has {value} and trunk {name} allows {limit}',
    mend: 'Add one of the offered codecs to the trunk, or offer one that it allows.',
  }),
  number_invalid: caller({
    sip: 404,
    http: 422,
    voice: 21211,
    voice_http: 400,
    sip_number: 32206,
    sentence: 'the called number {value} is not an E.164 number',
    mend: 'Send + and the country code, or a national number of {limit}.',
  }),
  number_incomplete: caller({
    sip: 484,
    sentence: 'the called number {value} is local to {limit}, which is no numbering plan of this platform',
    mend: 'Send the number with + and the country code, or phone-context with + and the country code.',
  }),
  caller_not_owned: caller({
    sip: 403,
    http: 422,
    voice: 21210,
    voice_http: 400,
    sip_number: 32204,
    sentence: 'the caller number {value} is {limit}',
    mend: 'Present a number of the project which is routed to this service.',
  }),
  caller_format_mismatch: caller({
    http: 422,
    voice: 13214,
    voice_http: 400,
    sentence: 'the caller id {value} is not in the same format as {limit}',
    mend: 'Give CallerId, To and From all with a leading + or all without.',
  }),
  destination_high_risk: limit({
    sip: 403,
    http: 403,
    voice: 21215,
    voice_http: 403,
    sip_number: 32205,
    sentence: 'the destination {value} is closed: calls to {name} attract fraud',
    mend: 'Ask the operator to open `{limit}` for the project.',
  }),
  destination_denied: limit({
    sip: 403,
    http: 403,
    voice: 21215,
    voice_http: 403,
    sip_number: 32205,
    sentence: 'the destination {value} is not allowed by policy {name}: {limit}',
    mend: 'Add an allow rule for the destination to the policy.',
  }),
  outside_calling_hours: limit({
    sip: 403,
    http: 403,
    voice: 21215,
    voice_http: 403,
    sip_number: 32205,
    sentence: 'it is {value}, which is not in the calling hours of policy {name}',
    mend: 'Call again within the calling hours, or change those of the policy.',
  }),
  DESTINATION_CONTAINED: limit({
    sip: 403,
    http: 403,
    voice: 21216,
    voice_http: 403,
    sip_number: 32203,
    sentence: 'the destination {value} is contained: prefix {limit}, case {name}',
    mend: 'Ask for the release of the containment, quoting its case.',
  }),
  no_rate: ours({
    sip: 404,
    http: 409,
    voice: 21214,
    voice_http: 400,
    sentence: 'the price book {name} has no rate for {value}',
    mend: 'Add a rate for the destination to the price book.',
  }),
  no_route: ours({
    sip: 404,
    http: 409,
    voice: 21214,
    voice_http: 400,
    sip_number: 32010,
    sentence: 'there is no enabled target and no carrier route for {value}',
    mend: 'Enable a termination target of the trunk, or add a carrier route.',
  }),
  rate_above_ceiling: limit({
    sip: 403,
    http: 403,
    voice: 21215,
    voice_http: 403,
    sip_number: 32205,
    of_money: true,
    sentence: 'the rate of {value} a minute is above the dearest rate {limit} of {name}',
    mend: 'Raise max_destination_rate_minor, or call a cheaper destination.',
  }),
  concurrency_exceeded: limit({
    sip: 503,
    http: 429,
    voice: 20429,
    voice_http: 429,
    sentence: '{value:call is|calls are} in progress and the concurrency of {name} is {limit}',
    mend: 'Wait until a call ends, or raise the concurrency.',
  }),
  cps_exceeded: limit({
    sip: 503,
    http: 429,
    voice: 32001,
    voice_http: 429,
    sip_number: 32001,
    retry_after_seconds: 1,
    sentence: '{value:call was|calls were} placed within a second and the calls per second of {name} are {limit}',
    mend: 'Slow down, or raise the calls per second.',
  }),
  daily_spend_exceeded: spend(
    'the spend of today, {value} with this call, is above the daily cap {limit} of {name}',
    'Raise the daily cap, or wait for midnight in the time zone of the organization.',
  ),
  velocity_exceeded: spend(
    'the spend of the last hour, {value} with this call, is above the velocity cap {limit} of {name}',
    'Wait, or raise velocity_cap_minor.',
  ),
  balance_exhausted: spend('the call needs {value} and the balance of {name} has {limit} left', 'Top up the balance.'),
  /** Also how a call ends that reached its maximum duration. */
  max_duration: limit({
    sip: 403,
    http: 403,
    voice: 20403,
    voice_http: 403,
    sip_number: 32015,
    sentence: 'max_call_duration_seconds of {name} is {limit}, and {value:second is|seconds are} reached',
    mend: 'Raise max_call_duration_seconds; 0 admits no call.',
  }),

  // Calls to our numbers.
  number_unallocated: caller({
    sip: 404,
    sentence: 'the called number {value} is not allocated',
    mend: 'Order the number, or check the route of the carrier.',
  }),
  number_unrouted: caller({
    sip: 404,
    sentence: 'the called number {value} has no route',
    mend: 'Route the number to an application, a trunk or a subtrunk.',
  }),
  number_quarantined: caller({
    sip: 410,
    sentence: 'the called number {value} is quarantined until {limit}',
    mend: 'Wait until the quarantine ends.',
  }),
  account_inactive: caller({
    sip: 403,
    voice: 10003,
    voice_http: 403,
    sentence: 'the voice account of {name} is {value}, not active',
    mend: 'Activate the voice account.',
  }),

  // How calls fail beyond us.
  peer_busy: caller({
    sip: 486,
    sip_number: 34002,
    sentence: 'the called party is busy ({value})',
    mend: 'Call again later.',
  }),
  no_answer: caller({
    sip: 480,
    sip_number: 34003,
    sentence: 'the called party did not answer within {value}',
    mend: 'Call again later, or raise the timeout.',
  }),
  peer_rejected: caller({
    sip: 403,
    sentence: 'the called side refused the call with {value}',
    mend: "See the attempts of the call for the target's answer.",
  }),
  peer_failed: peer({
    sip: 503,
    sip_number: 32011,
    sentence: 'every target failed, the last one with {value}',
    mend: 'Check the attempts of the call and the health of the targets.',
  }),
  target_unreachable: peer({
    sip: 503,
    sip_number: 32011,
    sentence: 'no target could be reached: {value}',
    mend: 'Check the address, the transport and the firewall of the targets.',
  }),
  target_not_allowed: caller({
    sip: 403,
    sip_number: 32011,
    sentence: 'nothing may be sent to the target: {value}',
    mend: 'Name a public address of your own peer; an operator may list private ones in STROWGER_ALLOW_PRIVATE_PEERS.',
  }),
  canceled: caller({
    sip: 487,
    sentence: 'the call was canceled before it was answered',
    mend: 'Nothing to mend.',
  }),

  // How running calls end.
  spend_exhausted: limit({
    sentence: 'the money for the call ended after {value:second|seconds}: {limit}',
    mend: 'Raise the cap, or top up the balance.',
  }),
  media_timeout: unknown({
    sip_number: 32014,
    sentence: 'no media came from either side for {value:second|seconds}',
    mend: 'Check for NAT or a firewall between the peer and the media addresses.',
  }),
  session_expired: unknown({
    sentence: 'the session was not refreshed within {value:second|seconds}',
    mend: 'Check that the peer still answers re-INVITE and UPDATE.',
  }),
  no_ack: unknown({
    sip_number: 32022,
    sentence: 'no ACK came for the answer within {value:second|seconds}',
    mend: 'Check for NAT between the peer and the platform, a wrong Contact, and a connection that closes meanwhile.',
  }),
  document_failed: caller({
    sip: 503,
    sentence: 'the document of the call could not be fetched or run',
    mend: 'Look at the errors of the call; `strowger script check` finds what is wrong in a document.',
  }),
  node_lost: ours({ sip: 500, sentence: 'the process that ran the call was lost', mend: 'Place the call again.' }),
  media_unavailable: ours({
    sip: 503,
    http: 503,
    voice: 20503,
    voice_http: 503,
    retry_after_seconds: 5,
    sentence: 'no media port is available: {value}',
    mend: 'Widen STROWGER_RTP_PORTS, or wait until calls end.',
  }),
  recording_unavailable: ours({
    sip: 503,
    http: 503,
    voice: 20503,
    voice_http: 503,
    retry_after_seconds: 30,
    sentence: 'the storage that holds the recording does not answer: {value}',
    mend: 'Check STROWGER_S3_ENDPOINT, the machine that has the file, and the log of the control process.',
  }),
  export_unavailable: ours({
    http: 503,
    retry_after_seconds: 30,
    sentence: 'the file of export {value} cannot be read: {name}',
    mend: 'Look at the machine that has the file, ask it, or begin the export again here.',
  }),
  state_unavailable: ours({
    sip: 503,
    http: 503,
    voice: 20503,
    voice_http: 503,
    retry_after_seconds: 5,
    sentence: 'the state cannot be written: {value}',
    mend: 'Check the load of the machine, what else holds the database, its disk, or the connection to PostgreSQL.',
  }),
  draining: ours({
    sip: 503,
    http: 503,
    voice: 20503,
    voice_http: 503,
    retry_after_seconds: 5,
    sentence: 'the platform is draining and takes no new calls',
    mend: 'Send the call to another node, or try again.',
  }),
  carrier_draining: ours({
    sip: 503,
    retry_after_seconds: 60,
    sentence: 'carrier {name} is drained and may bring no new calls',
    mend: 'Send the call by another route, or resume the carrier.',
  }),
  overloaded: ours({
    sip: 503,
    http: 503,
    voice: 20503,
    voice_http: 503,
    retry_after_seconds: 2,
    sentence: 'the platform is at its capacity: {value}',
    mend: 'Try again.',
  }),
  internal: ours({
    sip: 500,
    http: 500,
    voice: 20500,
    voice_http: 500,
    sentence: 'an unexpected error happened',
    mend: 'Quote the request id or the call sid to the operator.',
  }),

  // Voice: markup and call control.
  markup_invalid: caller({
    http: 400,
    voice: 12100,
    voice_http: 400,
    sentence: 'the markup does not parse: {value}',
    mend: 'Check the document with bin/strowger script check.',
  }),
  markup_fetch_failed: peer({
    voice: 11200,
    voice_http: 400,
    sentence: 'the document could not be fetched from {value}',
    mend: 'See the HTTP exchange in the events of the call.',
  }),
  application_sid_unsupported: caller({
    http: 400,
    voice: 21605,
    voice_http: 400,
    sentence: 'ApplicationSid {value} is not supported on calls',
    mend: 'Give Url or the inline markup.',
  }),
  call_not_live: caller({
    http: 409,
    voice: 21220,
    voice_http: 400,
    sentence: 'the call {value} is {limit} and cannot be changed that way',
    mend: 'Fetch the call for its status.',
  }),

  // HTTP (design section 7, spec Errors).
  project_context_required: caller({
    http: 400,
    sentence: 'the organization has several active projects and X-Project-ID is missing',
    mend: 'Send X-Project-ID with one of available_projects.',
  }),
  project_invalid: caller({
    http: 400,
    sentence: 'X-Project-ID {value} is not a project id',
    mend: 'Send prj_ and a lowercase UUID.',
  }),
  project_not_found: caller({
    http: 404,
    sentence: 'the project {value} does not belong to the organization',
    mend: 'List the projects for their ids.',
  }),
  voice_route_not_proxied: caller({
    http: 404,
    voice: 20404,
    voice_http: 404,
    sentence: 'the account or the path is not served here: {value}',
    mend: 'Check the AccountSid and the path.',
  }),
  scope_required: caller({
    http: 403,
    voice: 20403,
    voice_http: 403,
    sentence: 'the credential lacks the scope {value}',
    mend: 'Create a key with the scope {value}.',
  }),
  role_forbidden: caller({
    http: 403,
    sentence: 'the role {value} may not do this',
    mend: 'Ask a member with a higher role.',
  }),
  person_required: caller({
    http: 403,
    sentence: 'this action needs a person signed in to the console',
    mend: 'Sign in to the console.',
  }),
  precondition_required: caller({
    http: 428,
    sentence: 'If-Match is required',
    mend: 'Send the ETag that was read last in If-Match.',
  }),
  revision_mismatch: caller({
    http: 412,
    sentence: 'If-Match names revision {value} and the current revision is {limit}',
    mend: 'Read the resource again and repeat the change.',
  }),
  precondition_failed: caller({
    http: 412,
    voice: 20412,
    voice_http: 412,
    sentence: 'what If-Match or If-Unmodified-Since names is not the current version',
    mend: 'Read it again without the header.',
  }),
  if_match_invalid: caller({
    http: 400,
    sentence: 'If-Match {value} is not a quoted revision',
    mend: 'Send the ETag as it was received, such as "3".',
  }),
  idempotency_key_required: caller({
    http: 400,
    sentence: 'Idempotency-Key is required: nonblank, at most 128 characters',
    mend: 'Send a key that is new for each action and the same for its retries.',
  }),
  idempotency_key_reused: caller({
    http: 422,
    sentence: 'the Idempotency-Key was used with another body',
    mend: 'Send a new key with a new body.',
  }),
  idempotency_in_progress: caller({
    http: 409,
    sentence: 'the first request with this Idempotency-Key is still running',
    mend: 'Wait and repeat.',
  }),
  validation_failed: caller({
    http: 422,
    voice: 20001,
    voice_http: 400,
    sentence: 'the request is not valid: {value}',
    mend: 'See `errors` for each field.',
  }),
  body_malformed: caller({ http: 400, sentence: 'the body is not JSON: {value}', mend: 'Send one JSON object.' }),
  unsupported_media_type: caller({
    http: 415,
    voice: 20422,
    voice_http: 415,
    sentence: 'the content type {value} is not supported',
    mend: 'Send the content type that the endpoint names.',
  }),
  body_too_large: caller({
    http: 413,
    voice: 20413,
    voice_http: 413,
    sentence: 'the body is larger than {limit} bytes',
    mend: 'Send a smaller body.',
  }),
  not_found: caller({
    http: 404,
    voice: 20404,
    voice_http: 404,
    sentence: '{value} was not found',
    mend: 'Check the id and the project.',
  }),
  method_not_allowed: caller({
    http: 405,
    voice: 20004,
    voice_http: 405,
    sentence: 'the method {value} is not served here',
    mend: 'Use one of the methods of the Allow header.',
  }),
  rate_limited: limit({
    http: 429,
    voice: 20429,
    voice_http: 429,
    retry_after_seconds: 1,
    sentence: 'too many requests: {value}',
    mend: 'Wait for Retry-After and back off exponentially.',
  }),
  csrf_invalid: caller({
    http: 403,
    sentence: 'the CSRF token is missing or wrong',
    mend: 'Load the page again and repeat the action.',
  }),
  account_locked: caller({
    http: 429,
    retry_after_seconds: 60,
    sentence: 'too many failed sign-ins: {value}',
    mend: 'Wait a minute and try again.',
  }),
  recording_consent_required: caller({
    http: 409,
    voice: 20403,
    voice_http: 403,
    sentence: 'recording is on and nobody has accepted the recording consent of {name}',
    mend: 'An admin or engineer accepts it in the console.',
  }),
  limit_reached: limit({
    http: 409,
    sentence: '{name} has {value} and the limit is {limit}',
    mend: 'Remove those that are no longer used.',
  }),
  trunk_releasing: caller({
    http: 409,
    sentence: 'trunk {name} is {value}',
    mend: 'Create another trunk.',
  }),
  trunk_in_use: caller({
    http: 409,
    sentence: 'trunk {name} still has {value}',
    mend: 'Wait until its calls end and move its numbers, then delete it.',
  }),
  target_exists: caller({
    http: 409,
    sentence: 'the trunk has a target {value} by that transport already',
    mend: 'Change the existing target.',
  }),
  source_conflict: caller({
    http: 409,
    sentence: 'the source {value} would be ambiguous with trunk {name}',
    mend: 'Remove it from that trunk, or add it to this one as an IP credential with another selector_precedence.',
  }),
  source_of_carrier: caller({
    http: 409,
    sentence: 'the source {value} overlaps the addresses of a carrier',
    mend: 'Name the address of your own equipment; use digest when it shares an address with a carrier.',
  }),
  confirm_name_mismatch: caller({
    http: 422,
    sentence: 'confirm_name {value} is not the name of the resource',
    mend: 'Send the exact name.',
  }),
  policy_in_use: caller({
    http: 409,
    sentence: 'policy {name} is attached to {value:service|services}',
    mend: 'Detach it first, or delete with detach=true.',
  }),
  policy_archived: caller({ http: 409, sentence: 'policy {name} is archived', mend: 'Use a live policy.' }),
  country_code_shared: caller({
    http: 422,
    sentence: 'the calling code of {value} also reaches another country, so that a country rule cannot use it',
    mend: 'Use prefix rules.',
  }),
  number_in_use: caller({
    http: 409,
    sentence: 'the number {value} is {limit}',
    mend: 'Choose another number.',
  }),
  resource_exists: caller({
    http: 409,
    sentence: '{value} exists already',
    mend: 'Use the existing one, or choose another name.',
  }),
  member_locked: caller({
    http: 403,
    sentence: 'the account {name} was locked by the operator of the platform',
    mend: 'Ask the operator why.',
  }),
  password_reset_over: caller({
    http: 404,
    sentence: 'this link has expired, or has been used or replaced',
    mend: 'Ask the operator for a new link.',
  }),
  invitation_over: caller({
    http: 404,
    sentence: 'this invitation was used or withdrawn, or its seven days are over',
    mend: 'Ask for a new invitation.',
  }),
  operator_source_forbidden: caller({
    http: 403,
    sentence: 'the operator API takes no requests from this address',
    mend: 'Send them from a network that STROWGER_OPERATOR_SOURCES names.',
  }),
  checklist_open: caller({
    http: 409,
    sentence: '{name} cannot leave the sandbox yet: {value}',
    mend: 'Close every point of the checklist, then try again.',
  }),
  price_leap: caller({
    http: 409,
    sentence: '{limit:price moves|prices move} tenfold or more, such as {value}',
    mend: 'Check the unit and the currency of the list, then import it with confirm_leaps (strowger: --confirm).',
  }),
  number_limit: limit({
    http: 409,
    sentence: '{name} may hold {limit:number|numbers}, and would hold {value} with those that are in quarantine',
    mend: 'Ask an operator for more, or wait until the quarantine of released numbers ends.',
  }),
  order_unaffordable: limit({
    http: 409,
    of_money: true,
    sentence: 'the numbers cost {value} a month, and the balance of {name} has {limit} left',
    mend: 'Top up the balance.',
  }),
  prices_end: caller({
    http: 409,
    sentence: 'the list of {value:price|prices} ends {limit:that is|that are} in force, such as {name}',
    mend: 'Check that the list is whole, then import it with confirm_ended (strowger: --confirm).',
  }),
  organization_suspended: caller({
    http: 409,
    sentence: 'the organization {name} is suspended',
    mend: 'Resume the organization first.',
  }),
  state_conflict: caller({
    http: 409,
    sentence: '{name} is {value} and cannot be changed that way',
    mend: 'Read the resource for its state.',
  }),
} as const satisfies Record<string, ReasonEntry>

export type Reason = keyof typeof REASONS

export const isReason = (text: string): text is Reason => Object.hasOwn(REASONS, text)
