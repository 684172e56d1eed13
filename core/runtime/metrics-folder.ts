/** The folder below the run folder where each process serves its metrics on a socket. */
export const METRICS_FOLDER = 'metrics'
