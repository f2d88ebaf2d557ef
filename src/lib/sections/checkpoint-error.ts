/** A checkpoint cannot be used. The message is a sentence for the operator, and says why. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError'
}
