/**
 * The parameter of a next hop that names the machine whose edge has a flow to that address. It instructs our own edge,
 * and is never part of a message.
 */
export const MACHINE_PARAMETER = 'x-machine'
