"""The papers' equations as slow loops over plain numbers, one function an equation and one sample a call.

Nothing here is shared with the package. Logits are lists of floats; a tree is its list of parents, walked node by node,
and has a logit for every node but the root, so that node `i` has `logits[i - 1]`. Depths are counted as the equation at
hand counts them: from 1 at the root in 002, from 0 in HXE.
"""

import math


def log_softmax(logits):
    best = max(logits)
    total = math.fsum(math.exp(x - best) for x in logits)
    return [x - best - math.log(total) for x in logits]


def softmax(logits):
    return [math.exp(x) for x in log_softmax(logits)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


# Flat losses.


def cross_entropy(logits, y):
    """002 Eq. 5, 003 Eq. 4 with one class marked."""
    return -log_softmax(logits)[y]


def soft_cross_entropy(logits, row):
    """000 Eq. 1; 004 Eq. 3 and 9: `-sum_i row_i log f_i`."""
    log_f = log_softmax(logits)
    return -math.fsum(row[i] * log_f[i] for i in range(len(row)))


def label_smoothing(logits, y, smoothing):
    """004 Eq. 2 with a uniform u."""
    k = len(logits)
    return soft_cross_entropy(logits, [(1 - smoothing) * (i == y) + smoothing / k for i in range(k)])


def confidence_penalty(logits, y, strength):
    """002 Eq. 6: the neg-entropy is added."""
    return cross_entropy(logits, y) + strength * math.fsum(p * math.log(p) for p in softmax(logits))


def infogain(logits, y, matrix):
    """004 Eq. 1: `-sum_i H_{i,y} log f_i`."""
    log_f = log_softmax(logits)
    return -math.fsum(matrix[i][y] * log_f[i] for i in range(len(logits)))


def mixed_row(relation, eps, y):
    """004 Eq. 4 and 6: `(1 - eps_y) delta_yi + eps_y A_yi`; a class without kin stays one-hot."""
    k = len(relation)
    if sum(relation[y]) == 0:
        return [float(i == y) for i in range(k)]
    return [(1 - eps[y]) * (i == y) + eps[y] * relation[y][i] for i in range(k)]


# Learned mixing.


def class_penalty(eps, relation, alpha, beta, gamma, p):
    """004 Eq. 10 beyond the data term, with `p_i` of Sec. 3.3 written out (its A_ii is 1)."""
    total = 0.0
    for i in range(len(eps)):
        scaled = [eps[i] * relation[i][j] if j != i else 1 - eps[i] for j in range(len(eps))]
        total += alpha * (math.fsum(abs(x) for x in scaled) - 1) ** 2
        total += beta * abs(eps[i] - 0.5) ** p + gamma * abs(eps[i]) ** p
    return total


def matrix_penalty(e, c, alpha, beta, gamma, eta, p, hinge=False):
    """004 Eq. 11 beyond the data term; the hinge pays only where the diagonal is short of its lead."""
    k, total = len(e), 0.0
    for i in range(k):
        total += alpha * (sum(e[i]) - 1) ** 2
        for j in range(k):
            total += beta * abs(e[i][j] - 1) ** p + gamma * abs(e[i][j]) ** p
        lead = (k - 1) * (e[i][i] - c[i]) - sum(e[i][j] for j in range(k) if j != i)
        total += eta * (min(lead, 0.0) if hinge else lead) ** 2
    return total


def led_row(theta, share_theta, margin, i):
    """A row that gives away part of the largest share m with `1 - m >= m q_j + c` for every other class j."""
    others = [j for j in range(len(theta)) if j != i]
    q = dict(zip(others, softmax([theta[j] for j in others]), strict=True))
    share = sigmoid(share_theta) * min((1 - margin) / (1 + q[j]) for j in others)
    return [1 - share if j == i else share * q[j] for j in range(len(theta))]


def log_barrier(fractions):
    return math.fsum(-math.log(x) - math.log(1 - x) for x in fractions) / len(fractions)


# Trees.


def is_leaf(parents, node):
    return node not in parents


def path(parents, node):
    """J_i of 002 without the root: the nodes from the top down to `node`."""
    found = []
    while parents[node] != -1:
        found.insert(0, node)
        node = parents[node]
    return found


def depth(parents, node):
    """002: the number of ancestors plus one."""
    return len(path(parents, node)) + 1


def strictly_below(parents, node, other):
    """Whether `other` lies below `node`."""
    return other != node and (node == 0 or node in path(parents, other))


def children(parents, node):
    return [j for j in range(len(parents)) if parents[j] == node]


def log_p(logits, parents, node):
    """002 Sec. 3.1: the softmax over a set of siblings, for one of them."""
    siblings = children(parents, parents[node])
    return log_softmax([logits[j - 1] for j in siblings])[siblings.index(node)]


def all_log_p(logits, parents):
    """`log_p` of every node; the root's is 0."""
    return [0.0] + [log_p(logits, parents, j) for j in range(1, len(parents))]


def node_log_prob(logits, parents, node):
    """002: `z_i`, the product along the path."""
    return math.fsum(log_p(logits, parents, j) for j in path(parents, node))


def open_mass(logits, parents, node):
    """002 Eq. 2, second sum, where a masked node (-inf) and what is below it has probability 0; in torch scalars."""
    prob = {0: 1.0}
    for j in range(1, len(parents)):
        siblings = [k for k in children(parents, parents[j]) if logits[k - 1] > -math.inf]
        if j not in siblings:
            prob[j] = 0.0
            continue
        below = sum((logits[k - 1] - logits[j - 1].detach()).exp() for k in siblings)
        prob[j] = prob[parents[j]] * (logits[j - 1] - logits[j - 1].detach()).exp() / below
    inner = [i for i in range(1, len(parents)) if i in parents and not strictly_below(parents, node, i)]
    return sum((prob[i] for i in inner), logits.new_zeros(()))


def conditional_softmax(logits, parents, node):
    return -node_log_prob(logits, parents, node)


def hierarchical(logits, parents, node, targets):
    """002 Eq. 2: y marks the node (and, with "path", all above it), and nothing below the node contributes."""
    log_probs = all_log_p(logits, parents)
    nodes = range(1, len(parents))
    paths = {i: path(parents, i) for i in nodes}
    marked = set(paths[node] if node else []) if targets == "path" else {node}
    total = 0.0
    for j in nodes:
        s = sum(1 for i in nodes if i in marked and j in paths[i])
        total -= s * log_probs[j]
    for i in nodes:
        if i in parents and not strictly_below(parents, node, i):
            total += math.exp(math.fsum(log_probs[j] for j in paths[i]))
    return total


def convex_hierarchical(logits, parents, node, soft_off_path):
    """002 Eq. 4 with a plus: `sum_i KL(q_i || p_i) / depth(i)`, q_i uniform off the path where Sec. 5.4 is asked for."""
    log_probs = all_log_p(logits, parents)
    on_path = [0, *path(parents, node)]
    total = 0.0
    for i in set(parents) - {-1}:
        below = children(parents, i)
        if i in on_path and i != node:
            q = [float(j in on_path) for j in below]
        elif i == node or strictly_below(parents, node, i) or not soft_off_path:
            continue
        else:
            q = [1 / len(below)] * len(below)
        divergence = math.fsum(a * (math.log(a) - log_probs[j]) for a, j in zip(q, below, strict=True) if a)
        total += divergence / depth(parents, i)
    return total


def leaf_log_sum(leaf_logits, parents, leaves, node):
    """The log of the summed exponentials of the leaves at or below a node."""
    chosen = [x for x, leaf in zip(leaf_logits, leaves, strict=True) if node in [0, *path(parents, leaf)]]
    best = max(chosen)
    return best + math.log(math.fsum(math.exp(x - best) for x in chosen))


def hierarchical_cross_entropy(leaf_logits, parents, leaves, node, alpha, normalize):
    """HXE: `-sum exp(-alpha depth) log p(node | parent)` along the path, the root at depth 0."""
    weight = [math.exp(-alpha * len(path(parents, i))) for i in range(len(parents))]
    scale = math.fsum(weight) if normalize else 1.0
    total = 0.0
    for j in path(parents, node):
        here = leaf_log_sum(leaf_logits, parents, leaves, j)
        above = leaf_log_sum(leaf_logits, parents, leaves, parents[j])
        total -= weight[j] / scale * (here - above)
    return total


def ancestors(leaf_logits, parents, leaves, node, weight):
    """`weight` times the sum of `-log P` over the inner, non-root nodes at or above a node."""
    whole = leaf_log_sum(leaf_logits, parents, leaves, 0)
    inner = [a for a in path(parents, node) if not is_leaf(parents, a)]
    return weight * math.fsum(whole - leaf_log_sum(leaf_logits, parents, leaves, a) for a in inner)


def height(parents, node):
    """The number of edges down to the deepest leaf below a node."""
    return max((1 + height(parents, i) for i, above in enumerate(parents) if above == node), default=0)


def expected_distance(leaf_logits, parents, leaves, node):
    """`sum_j p_j d(node, j)`, d the height of the lowest common ancestor; 0 for leaves at or below the node."""
    ours, total = [0, *path(parents, node)], 0.0
    for probability, leaf in zip(softmax(leaf_logits), leaves, strict=True):
        theirs = [0, *path(parents, leaf)]
        if node not in theirs:
            total += probability * height(parents, [a for a in ours if a in theirs][-1])
    return total


def expected_cost(logits, costs, y):
    return math.fsum(p * cost for p, cost in zip(softmax(logits), costs[y], strict=True))


# The label embedding network.


def embedding_terms(z1, z2, e, y, tau, alpha, p, absolute=False):
    """003 Eq. 7, 13, 8, 12, 11, and whether z2 is right (App. A)."""
    excess = softmax(z2)[y] - alpha
    return {
        "hard": cross_entropy(z1, y),
        "soft": soft_cross_entropy(z1, softmax(e)),
        "similarity": cross_entropy(z2, y),
        "confidence": abs(excess) if absolute else max(0.0, excess) ** p,
        "embedding": soft_cross_entropy(e, softmax([x / tau for x in z2])),
        "right": max(range(len(z2)), key=lambda i: z2[i]) == y,
    }


def label_embedding(z1, z2, e, y, preset, tau=2.0, alpha=0.9, p=1.0):
    """003 Eq. 14 over a batch, and what the released code makes of it; the embedding teaches from the start.

    `e[i]` is the embedding of sample i's class. The code for text divides every sum by the number of tokens; the other
    two divide the embedding term by the number of samples that z2 gets right.
    """
    n, text = len(y), preset == "released-text"
    terms = [embedding_terms(z1[i], z2[i], e[i], y[i], tau, alpha, p, absolute=text) for i in range(n)]
    share = 0.5 if preset == "released" else 1.0
    right = sum(term["right"] for term in terms)
    total = sum(share * (term["hard"] + term["soft"]) + term["similarity"] for term in terms) / n
    total += sum(term["confidence"] for term in terms) / (1 if preset == "released" else n)
    learned = sum(term["embedding"] for term in terms if term["right"])
    return total + learned / (n if text else max(right, 1))


def kin(z1, z2, e, target, parents, leaves, preset, ancestor_weight, tau=2.0, alpha=0.9, p=1.0):
    """The label embedding network plus the ancestors term over a batch; `e` is the whole embedding.

    A target is a class (int), a list of class probabilities, or `("node", v)` for an inner node v.
    """
    n, total, taught, right = len(target), 0.0, 0.0, 0.0
    share = 1.0 if preset == "paper" else 0.5
    for i, y in enumerate(target):
        if isinstance(y, tuple):
            node = y[1]
            whole = [
                leaf_log_sum(z, parents, leaves, 0) - leaf_log_sum(z, parents, leaves, node) for z in (z1[i], z2[i])
            ]
            total += (share * whole[0] + whole[1]) / n
            total += ancestors(z1[i], parents, leaves, node, ancestor_weight) / n
            continue
        mixture = [(1.0, y)] if isinstance(y, int) else [(t, k) for k, t in enumerate(y)]
        for t, k in mixture:
            term = embedding_terms(z1[i], z2[i], e[k], k, tau, alpha, p)
            total += t * (share * (term["hard"] + term["soft"]) + term["similarity"]) / n
            total += t * term["confidence"] / (1 if preset == "released" else n)
            total += t * ancestors(z1[i], parents, leaves, leaves[k], ancestor_weight) / n
            taught += t * term["embedding"] * term["right"]
            right += t * term["right"]
    return total + taught / (n if preset == "kin-mean" else right or 1.0)


def compressed_embedding(a, b, y):
    """003 Eq. 16."""
    return [max(0.0, math.fsum(a[y][h] * b[h][i] for h in range(len(b)))) for i in range(len(b[0]))]


# Adaptive labels and 001's baselines.


def class_mean(z, target, weight, k, leave_out=None):
    """001 Eq. 1 with sample weights: the mean of class k, of its samples but one if asked; None without samples."""
    own = [i for i in range(len(z)) if target[i] == k and i != leave_out and weight[i] > 0]
    total = sum(weight[i] for i in own)
    return [math.fsum(weight[i] * z[i][d] for i in own) / total for d in range(len(z[0]))] if own else None


def unit(vector):
    length = math.hypot(*vector)
    return [x / length for x in vector] if length > 1e-6 else [0.0] * len(vector)


def anchored_label(means, k, share):
    """`unit((1 - b) e_k + b unit(mean_k - mean of means))`, the mean over the classes that have one."""
    seen = [mean for mean in means if any(mean)]
    dims = len(means[0])
    middle = [math.fsum(mean[d] for mean in seen) / len(seen) if seen else 0.0 for d in range(dims)]
    apart = unit([means[k][d] - middle[d] for d in range(dims)]) if any(means[k]) else [0.0] * dims
    return unit([(1 - share) * (d == k) + share * apart[d] for d in range(dims)])


def cosine_labels_loss(z, y, means, share, scale):
    """Adaptive labels by cosines, one sample: cross entropy to logits `s z/|z| . label_k`."""
    labels = [anchored_label(means, k, share) for k in range(len(means))]
    direction = unit(z)
    return cross_entropy(
        [scale * math.fsum(a * b for a, b in zip(direction, label, strict=True)) for label in labels], y
    )


def moved_mean(mean, z, target, weight, k, momentum):
    """The running mean of class k after a batch of normalized outputs."""
    batch = class_mean([unit(row) for row in z], target, weight, k)
    if batch is None:
        return mean
    return [momentum * a + (1 - momentum) * b for a, b in zip(mean, batch, strict=True)] if any(mean) else batch


def distance(z, label):
    """001 Eq. 2's norm, the square floored at 1e-12."""
    return math.sqrt(max(math.fsum((a - b) ** 2 for a, b in zip(z, label, strict=True)), 1e-12))


def repel(z, target, weight):
    """001 Eq. 3 as a mean over all pairs, those of one class counted as zero."""
    total = 0.0
    for i in range(len(z)):
        for j in range(len(z)):
            if target[i] != target[j]:
                product = math.fsum(a * b for a, b in zip(z[i], z[j], strict=True))
                total += weight[i] * weight[j] * product / (math.hypot(*z[i]) * math.hypot(*z[j]))
    return total / sum(weight) ** 2


def retrospection(logits, y, soft, recorded, tau, b):
    """LWR: `(1 - b) CE + b tau^2 KL(soft || softmax(logits / tau))`; CE where nothing is recorded."""
    if not recorded:
        return cross_entropy(logits, y)
    q = softmax([x / tau for x in logits])
    divergence = math.fsum(s * math.log(s / q[i]) for i, s in enumerate(soft) if s > 0)
    return (1 - b) * cross_entropy(logits, y) + b * tau**2 * divergence


def huber(z, vector):
    """Delta 1: half the square up to 1, then linear; averaged over dimensions."""
    gaps = [abs(a - b) for a, b in zip(z, vector, strict=True)]
    return math.fsum(0.5 * g * g if g <= 1 else g - 0.5 for g in gaps) / len(gaps)


# Decisions.


def answers_by_cost(probs, costs):
    """All answers, the best first: by expected cost, then by probability (0 for actions), then by position.

    Rows of `costs` are true classes, columns answers. With `Fraction`s, ties are exact.
    """
    expected = [sum(p * row[answer] for p, row in zip(probs, costs, strict=True)) for answer in range(len(costs[0]))]
    likely = [*probs, *[0] * (len(costs[0]) - len(probs))]
    return sorted(range(len(expected)), key=lambda answer: (expected[answer], -likely[answer], answer))
