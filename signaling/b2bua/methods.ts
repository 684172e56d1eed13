/** The methods that we accept. A MESSAGE is accepted only within a call whose other side is a peer that can read it. */
export const ALLOW = 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, REFER, NOTIFY, MESSAGE'
