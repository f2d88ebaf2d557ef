// Why a writer may not publish: the stream is another one's.
/** The stream is another writer's: nothing may be published or acknowledged here. The sentence is for operators. */
export class RefusedError extends Error {}

/** That writer publishes at present: this process has to stop. */
export class FencedError extends RefusedError {}

export const fenced = (): FencedError =>
  new FencedError('another writer publishes on the bus in place of this one, which therefore stops')

/** As `fenced`, by a writer that a wrong `--data-dir` or `--bus-name` has brought together with this one. */
export const fencedByStranger = (): FencedError =>
  new FencedError(
    'a writer with another data folder publishes on the bus: choose another --bus-name, or give its --data-dir once it has ended',
  )

/** Nobody publishes there any more, or at present. */
export const refused = (): RefusedError =>
  new RefusedError(
    'the stream on the bus belongs to another data folder: give that as --data-dir, choose another --bus-name, or, if that folder ' +
      'is not used any more, empty the stream with "nats stream purge"',
  )
