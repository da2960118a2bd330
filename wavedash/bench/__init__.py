"""Benchmarks: `wavedash bench NAME` runs the `main(arguments)` of a file or folder here, which prints a table.

    pool        the worker pool beside those of Gymnasium and Stable-Baselines3
    ppo         whole training beside Stable-Baselines3 and CleanRL
    memory      recurrent training beside sb3-contrib and rsl-rl
    zoo         what is learned beside Stable-Baselines3, with the settings of RL-Zoo
    update      precision, compilation and CUDA graphs, each alone and together
    neighbours  training beside programs that want the same cores
    rlbot       exported bots beside the trainer: same observations, actions and games, and how long they take
    page        training beside the page and its viewers, and how late live frames are

    rocket      Rocket League beside RocketSim, RLGym, rlgym-learn and rlgym-ppo
    sim         our simulator beside RocketSim
    iteration   whole iterations of Rocket League on a CPU or a GPU
    adaptation  series against the same opponent: later games beside the first, with memory and without
    league      whole iterations against frozen policies beside the same without opponents
    lanes       whole iterations with lanes and measures of skill beside the plain task
    walk        a walking robot: physics, environment and training beside plain MuJoCo
    seeing      how far walking robots come that see, that are blind and that have a camera; trains them
    parity      how far our simulator is from RocketSim, mechanic by mechanic

    sensors     depth images and scandots of walking robots beside rays of MuJoCo

They share `tables` and the `synthetic` environment; `rocket_peers` is what the peers of `rocket` run.
"""
