import torch


class PadRagged(torch.autograd.Function):
    """Sequences (T_i, D) of different lengths -> a padded batch (B, T, D) and their lengths."""

    @staticmethod
    def forward(ctx, fill, *sequences):
        lengths = torch.tensor([len(s) for s in sequences])
        out = sequences[0].new_full((len(sequences), int(lengths.max()), sequences[0].shape[1]), fill)
        for row, s in zip(out, sequences, strict=True):
            row[: len(s)] = s
        ctx.lengths = lengths.tolist()
        ctx.mark_non_differentiable(lengths)
        return out, lengths

    @staticmethod
    def backward(ctx, grad, _):
        return (None, *(g[:n] for g, n in zip(grad, ctx.lengths, strict=True)))


def pad_ragged(sequences, fill=0.0):
    return PadRagged.apply(fill, *sequences)


function = pad_ragged
wrt = ("sequences",)


def calls():
    g = torch.Generator().manual_seed(361)
    s = [torch.randn(n, 2, generator=g, dtype=torch.float64) for n in (3, 1, 4)]
    return [((s,), {}), ((s[:1],), {"fill": -1.0})]


def primal(sequences, fill=0.0):
    longest = max(len(s) for s in sequences)
    rows = [torch.nn.functional.pad(s, (0, 0, 0, longest - len(s)), value=fill) for s in sequences]
    return torch.stack(rows), torch.tensor([len(s) for s in sequences])


TRUTH = {"sound": True, "defect": "", "rank": "sound", "names": [], "first_law": ""}
